# Finds or gets what the browser tests need: a chromium, and the library that the node inside Playwright's wheel is linked with.
# Says in one line what is missing where it cannot be installed; the browser tests are then left out. Under CI that is a failure.
set -u
library=libatomic.so.1
have_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1
have_library() { PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q "$library"; }

have_chromium && have_library && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium libatomic1; } >/dev/null 2>&1
fi
have_chromium || echo "No chromium here and none could be installed: the browser tests are left out (install chromium to run them)."
have_library || echo "$library is not here and could not be installed: Playwright's node needs it (Debian's package libatomic1), so the browser tests are left out."
have_chromium && have_library || [ -z "${CI:-}" ]
