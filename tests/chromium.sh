# Finds or gets a chromium for the browser tests; says in one line when they have to be left out.
set -u
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1
  command -v chromium >/dev/null 2>&1 && exit 0
fi
echo "No chromium here and none could be installed: the browser tests are left out (install chromium to run them)."
