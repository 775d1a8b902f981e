#!/bin/bash
# Usage: machine.sh BASE BUILD
# Another machine, as docs/deploy/fleet.md has it: a container that systemd has started, from BASE, an archive of Debian with PoCL. XSched is
# installed there from BUILD, and OpenSSH's server listens at a port of 127.0.0.1. Of it: `xsched top --host` from here, and the tenants' file.
# Needs podman, root, and Debian's mirror.
set -euo pipefail
base=$1
build=$(realpath "$2")
here=$(dirname "$(realpath "$0")")

# shellcheck source=tests/packages/podman.sh
. "$here/../../packages/podman.sh"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
fail() {
  echo "machine.sh: $*" >&2
  podman exec "$name" journalctl --no-pager --lines 30 >&2 || true
  exit 1
}
say() { echo "-- $*"; }
page() { python3 -B "$here/../page.py" fleet "$@"; }
there() { podman exec --workdir /root "$name" "$@"; }
until_true() {
  for _ in {1..100}; do
    "$@" && return
    sleep 0.2
  done
  return 1
}

# The machine. Its services listen at no other port: the configuration is there before the package, whose service starts with systemd.
mkdir "$work/machine"
DESTDIR=$work/machine/tree cmake --install "$build" --prefix /usr >/dev/null
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
cp "$work/key.pub" "$work/machine/authorized_keys"
cat >"$work/machine/fleet.conf" <<END
Port $port
ListenAddress 127.0.0.1
PasswordAuthentication no
PermitRootLogin no
END
cat >"$work/machine/Containerfile" <<END
FROM localhost/$name-base
COPY fleet.conf /etc/ssh/sshd_config.d/
RUN apt-get -q update && apt-get -qq -y install --no-install-recommends systemd systemd-sysv openssh-server \
    libfmt9 libspdlog1.10 libmicrohttpd12 libncurses6
COPY tree/usr /usr
RUN systemd-sysusers && useradd --create-home --shell /bin/sh ordinary && useradd --create-home --shell /bin/sh --groups xsched admin && \
    mkdir -p /etc/xsched /etc/credstore && systemctl enable xserver
COPY --chown=ordinary authorized_keys /home/ordinary/.ssh/authorized_keys
COPY --chown=admin authorized_keys /home/admin/.ssh/authorized_keys
END
podman import --quiet "$base" "$name-base" >/dev/null
podman build --quiet --network host "${limits[@]}" --tag "$name" "$work/machine" >/dev/null
# Privileged: so that systemd can confine the server as the unit says.
podman run --detach --name "$name" --hostname gpu7 --systemd always --privileged --network host "${limits[@]}" "$name" /sbin/init >/dev/null
has_started() { [[ $(there systemctl is-system-running 2>/dev/null || true) == running ]]; }
until_true has_started || fail "the machine does not start: $(there systemctl --failed || true)"
there systemctl --quiet is-active xserver ssh || fail "its services do not run"

# What the page calls gpu7. OpenSSH's client has the configuration of a user from the list of users alone, so it gets another one by its option.
mkdir "$work/bin"
cat >"$work/bin/ssh" <<END
#!/bin/sh
exec $(command -v ssh) -F $work/ssh_config "\$@"
END
chmod +x "$work/bin/ssh"
cat >"$work/ssh_config" <<END
Host gpu7
  HostName 127.0.0.1
  Port $port
  User ordinary
  IdentityFile $work/key
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
  StrictHostKeyChecking yes
END
echo "[127.0.0.1]:$port $(there cat /etc/ssh/ssh_host_ed25519_key.pub)" >"$work/known_hosts"
export PATH=$work/bin:$build/bin:$PATH

say "xsched top --host"
# A program of each of two users. It says what it is by its priority.
load=(xsched run --priority)
task=(/usr/libexec/xsched/xsched-latency-task --continuous --kernel-ms 2 --loops-per-ms 20 --seconds 300)
podman exec --detach --env POCL_DEVICES=pthread "$name" "${load[@]}" -3 -- "${task[@]}"
podman exec --detach --env POCL_DEVICES=pthread --env HOME=/home/ordinary --user ordinary "$name" "${load[@]}" -5 -- "${task[@]}"
has_both() { [[ $(there xsched list --json | grep -c '"priority"') == 2 ]]; }
until_true has_both || fail "its programs are not scheduled: $(there xsched list)"
mapfile -t commands < <(page "xsched top")
((${#commands[@]} == 3)) || fail "the page has these commands: ${commands[*]}"
[[ ${commands[0]} == "xsched top --host gpu7" && ${commands[2]} == *admin@gpu7* ]] || fail "the page has these commands: ${commands[*]}"

# shows TEXT USER'S ROOT'S: whether these programs are to be in what is shown (yes or no).
shows() {
  local text=$1 priority
  shift
  for priority in -5 -3; do
    if [[ $1 == yes ]]; then
      grep -qE -- "(^|[^0-9])$priority([^0-9]|\$)" <<<"$text" || fail "the program of priority $priority is not shown: $text"
    else
      ! grep -qE -- "(^|[^0-9])$priority([^0-9]|\$)" <<<"$text" || fail "the program of priority $priority is shown: $text"
    fi
    shift
  done
}
shows "$(bash -c "${commands[1]}")" yes no
# In the group of administrators.
shows "$(bash -c "${commands[2]}")" yes yes
# At a terminal, until q is pressed.
screen=$( (sleep 3; printf q) | TERM=xterm timeout 60 script --quiet --return --command "${commands[0]}" /dev/null) || fail "at a terminal: $screen"
shows "$screen" yes no
status=0
xsched top --host nobody@gpu7 --batch --count 1 2>/dev/null || status=$?
((status == 255)) || fail "ssh's refusal ends with $status"

say "the tenants' file, by the server's reload"
has_tenant() { there xsched tenants | grep -qw "$1"; }
# install_file COMMAND TENANT: as an administrator of the machine does it, by the page's command.
install_file() {
  printf '[[tenant]]\nname = "%s"\nusers = ["ordinary"]\n' "$2" | there_from_stdin tee tenants.toml >/dev/null
  there bash -c "$1"
}
there_from_stdin() { podman exec --interactive --workdir /root "$name" "$@"; }
reload=$(page "systemctl reload")
install_file "$reload" research || fail "the page's command fails"
until_true has_tenant research || fail "the server has not read the file: $(there xsched tenants)"
if install_file "$reload" 'a"b'; then fail "a bad file is installed"; fi
has_tenant research || fail "the server has lost its rules"

say "the tenants' file, as a credential of systemd"
# As systemd itself does, but not in containers: it mounts credentials in a namespace of its own, from where they get to services.
there mount --make-rshared /
there mkdir /etc/systemd/system/xserver.service.d
page LoadCredential | there_from_stdin tee /etc/systemd/system/xserver.service.d/override.conf >/dev/null
there systemd-analyze verify --man=no xserver.service || fail "systemd does not accept the page's settings"
there systemctl daemon-reload
restart=$(page "systemctl restart")
install_file "$restart" nightly || fail "the page's command fails"
until_true has_tenant nightly || fail "the server has not read the credential: $(there xsched tenants)"
! has_tenant research || fail "it reads the other file"
until_true has_both || fail "programs are not scheduled after the restart: $(there xsched list)"
[[ $(there stat --format '%U %a' /etc/credstore/tenants.toml) == "root 600" ]] || fail "everybody may read its source"
if install_file "$restart" 'a"b'; then fail "a bad credential is installed"; fi
has_tenant nightly || fail "the server has lost its rules"
install_file "$restart" serving || fail "the page's command fails"
until_true has_tenant serving || fail "another credential has no effect: $(there xsched tenants)"
echo "another machine is looked at by ssh, and has its tenants by a file and by a credential"
