"""The subcommands of ``loopscope``, one file each."""
