"""Running and debugging a model: inputs in, results out, stepping and seeking, breakpoints and watches."""
