#!/usr/bin/env bash
# Makes the image that nodes are built on from the distribution's packages, for hosts that cannot reach an image registry:
#   compose/base-image.sh TAG
# A minimal system with Python 3.11 or newer and a Java runtime, nothing else. It needs root, debootstrap and Docker.
# SUITE, MIRROR and COMPONENTS choose the distribution, by default this machine's own; PACKAGES what is added to the
# minimal system.
# Nothing is left behind but the image.
set -euo pipefail

die() {
    printf 'base-image.sh: %s\n' "$*" >&2
    exit 1
}

[ $# = 1 ] || die "usage: compose/base-image.sh TAG"
[ "$(id -u)" = 0 ] || die "it needs root: run it with sudo"
for tool in debootstrap docker unshare tar; do
    command -v "$tool" >/dev/null || die "$tool is missing: install it (Debian and Ubuntu: apt-get install debootstrap docker.io)"
done

# Prints the codename and the mirror that this machine installs from.
own_suite() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }
own_mirror() {
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v suite="$1" '$1 == suite && $2 ~ /^https?:|^file:/ { print $2; exit }'
}

suite=${SUITE:-$(own_suite)}
suite=${suite:-bookworm}
mirror=${MIRROR:-$(own_mirror "$suite")}
packages=${PACKAGES:-python3 default-jre-headless}
if [ "$(. /etc/os-release && echo "${ID:-}")" = ubuntu ]; then
    mirror=${mirror:-http://archive.ubuntu.com/ubuntu} components=${COMPONENTS:-main,universe}
else
    mirror=${mirror:-http://deb.debian.org/debian} components=${COMPONENTS:-main}
fi

root=$(mktemp -d "${TMPDIR:-/tmp}/nemesis-base-XXXXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"

# Whatever is mounted on the way, such as /proc, is mounted in a namespace of its own and goes with it.
unshare --mount debootstrap --variant=minbase --components="$components" "$suite" "$root" "$mirror"
# shellcheck disable=SC2086  # $packages is a list
unshare --mount sh -euc 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
    /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    sh -euc '
        mkdir -p /usr/share/man/man1
        apt-get -qq update
        apt-get -qq install -y --no-install-recommends "$@"
        apt-get clean
        rm -rf /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /var/log/*.log /tmp/*
    ' sh $packages
chroot "$root" python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$suite has no Python 3.11: set SUITE to a newer one"

tar --create --directory "$root" --one-file-system . |
    docker import --change 'LABEL nemesis.base=node' --change 'CMD ["bash"]' - "$1" >/dev/null
printf 'base-image.sh: %s is made of %s\n' "$1" "$suite"
