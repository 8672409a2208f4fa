#!/usr/bin/env bash
# Builds the image and runs it on a machine without a Docker engine: with buildah in chroot isolation, on a Debian that debootstrap makes.
#
#   docs/container-check.sh [options for `buildah bud`, such as --volume /etc/pip.conf:/etc/pip.conf:ro]
#
# Needs root, buildah, debootstrap, `.venv` of `./check`, the network, 5 GB in TMPDIR for some minutes, and this repository: the files of its
# working tree are built, without those that git ignores. Covers the build, the user, the volume, the health check, signals and restarts.
# Does not cover the official base image, the restart policy itself, cgroups, and networks of containers: those need an engine.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/container-check.XXXXXX")
server_pid=
image=localhost/babyagi-daemon:check
touch "$work/out"

clean_up() {
    [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null || true
    [ ! -d "$work/storage" ] || images rm --all >/dev/null 2>&1 || true # unmounts
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT

images() {
    buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

say() {
    echo "== $*"
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

expect() { # what, expected, seen
    [ "$2" = "$3" ] || { tail -n 40 "$work/out" >&2; fail "$1: expected '$2', saw '$3'"; }
    echo "ok: $1: $3"
}

make_base() {
    local base
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$work/root" >"$work/debootstrap.log"
    base=$(images from scratch)
    images add --quiet "$base" "$work/root" / >/dev/null
    images commit --quiet --rm "$base" localhost/python-base >/dev/null
    rm -rf --one-file-system "$work/root"
}

build() {
    local path
    mkdir "$work/source"
    git -C "$repository" ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' path; do [ ! -e "$repository/$path" ] || printf '%s\0' "$path"; done |
        tar --directory "$repository" --null --files-from - --create | tar --directory "$work/source" --extract
    timeout 1800 buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs bud --isolation chroot --format docker \
        --build-arg PYTHON_IMAGE=localhost/python-base --tag "$image" "$@" "$work/source" >"$work/build.log" 2>&1 ||
        { tail -n 40 "$work/build.log" >&2; fail "the build"; }
}

container_command() { # arguments and NAME=value pairs before `--`, as the entry point gets them
    local variables=()
    while [ "$1" != -- ]; do
        variables+=(--env "$1")
        shift
    done
    shift
    command=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs run --isolation chroot --user 10001:10001
        --volume "$work/source/babyagi/guide:/files:ro" "${variables[@]}" "$container" -- "$@") # buildah keeps the volume /data itself
}

in_container() {
    local command
    container_command "$@"
    timeout 300 "${command[@]}" </dev/null
}

code_of() {
    local code=0
    in_container "$@" >"$work/out" 2>&1 || code=$?
    echo "$code"
}

start_server() {
    PYTHONPATH="$repository" PYTHONDONTWRITEBYTECODE=1 "$repository/.venv/bin/python" - "$work" <<'PYTHON' &
import asyncio
import sys
from pathlib import Path

from support.local_server.server import LocalServer

WORK = Path(sys.argv[1])


async def serve():
    async with LocalServer(latency_s=0.5) as server:
        while True:
            n_repeated = len(server.answered) - len(set(server.answered))
            (WORK / "counts.new").write_text(f"{len(server.requests)} {n_repeated}\n")
            (WORK / "counts.new").replace(WORK / "counts")
            (WORK / "url").write_text(server.base_url)
            await asyncio.sleep(0.1)


asyncio.run(serve())
PYTHON
    server_pid=$!
    for _ in $(seq 100); do
        [ ! -s "$work/url" ] || return 0
        sleep 0.1
    done
    fail "the local server did not start"
}

n_requests() {
    sleep 0.3 # the server writes its counts ten times a second
    cut -d ' ' -f 1 "$work/counts"
}

descendants() { # of a process, parents before their children; some may be gone when this is read
    local child
    for child in $(pgrep -P "$1"); do
        echo "$child"
        descendants "$child"
    done
}

program_below() { # the program itself, whatever runs it and whatever it runs
    local pid
    for _ in $(seq 100); do
        for pid in $(descendants "$1"); do
            if { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -Eq '^[^ ]*python[^ ]* [^ ]*/babyagi( |$)'; then
                echo "$pid"
                return
            fi
        done
        sleep 0.1
    done
    fail "the program is not running below process $1"
}

check_image() {
    say "image"
    images images "$image"
    expect "user" "10001:10001" "$(images inspect --type image --format '{{.Docker.Config.User}}' "$image")"
    expect "entry point" "[babyagi]" "$(images inspect --type image --format '{{.Docker.Config.Entrypoint}}' "$image")"
    expect "health check" "[CMD babyagi doctor --quick]" \
        "$(images inspect --type image --format '{{.Docker.Config.Healthcheck.Test}}' "$image")"
    expect "volumes" "map[/data:{}]" "$(images inspect --type image --format '{{.Docker.Config.Volumes}}' "$image")"
    echo "environment: $(images inspect --type image --format '{{.Docker.Config.Env}}' "$image")"
}

check_commands() {
    say "commands"
    expect "owner and mode of the volume" "10001:10001 700" "$(in_container -- stat --format '%u:%g %a' /data)"
    expect "user" 10001 "$(in_container -- id -u)"
    expect "certificates" 0 "$(code_of -- test -s /etc/ssl/certs/ca-certificates.crt)"
    expect "version" 0 "$(code_of -- babyagi --version)"
    cat "$work/out"
    expect "health check of an empty home" 0 "$(code_of -- babyagi doctor --quick)"
    expect "doctor" 0 "$(code_of -- babyagi doctor)"
    for library in chromadb weaviate pinecone psycopg; do
        expect "the library $library" 0 "$(code_of -- python3 -c "import $library")"
    done
    expect "demo" 0 "$(code_of -- babyagi demo)"
    expect "health check" 0 "$(code_of -- babyagi doctor --quick)"
}

check_ended() {
    say "an ended objective makes no further call"
    local variables=(LLM_MODEL=local OPENAI_BASE_URL="$(cat "$work/url")" BABYAGI_FILES=/files OBJECTIVE="What is promised about limits?")
    expect "first start" 0 "$(code_of "${variables[@]}" -- babyagi)"
    local n_before
    n_before=$(n_requests)
    [ "$n_before" -gt 0 ] || fail "the model was never asked"
    for number in 1 2 3; do
        expect "start $number after the end" 0 "$(code_of "${variables[@]}" -- babyagi)"
    done
    expect "requests after three more starts" "$n_before" "$(n_requests)"
}

check_limit() {
    say "a limit that ended a run holds through restarts"
    local variables=(LLM_MODEL=local OPENAI_BASE_URL="$(cat "$work/url")" BABYAGI_FILES=/files BABYAGI_MAX_CALLS=4 OBJECTIVE="Is there a limit?")
    expect "first start" 3 "$(code_of "${variables[@]}" -- babyagi)"
    local n_before
    n_before=$(n_requests)
    for number in 1 2 3; do
        expect "restart $number" 3 "$(code_of "${variables[@]}" -- babyagi)"
    done
    expect "requests after three restarts" "$n_before" "$(n_requests)"
}

check_signal() {
    say "TERM, then going on"
    local variables=(LLM_MODEL=local OPENAI_BASE_URL="$(cat "$work/url")" BABYAGI_FILES=/files OBJECTIVE="What happens at a signal?")
    local n_before code=0 command program
    n_before=$(n_requests)
    container_command "${variables[@]}" -- babyagi
    "${command[@]}" </dev/null >"$work/out" 2>&1 &
    local pid=$!
    for _ in $(seq 300); do
        [ "$(n_requests)" -lt $((n_before + 3)) ] || break
    done
    program=$(program_below "$pid")
    kill -TERM "$program"
    wait "$pid" || code=$?
    expect "exit code after TERM" 143 "$code"
    expect "the next start ends it" 0 "$(code_of "${variables[@]}" -- babyagi)"
    [ "$(n_requests)" -gt $((n_before + 3)) ] || fail "the next start asked nothing"
    expect "answers that were paid for twice" 0 "$(cut -d ' ' -f 2 "$work/counts")"
}

check_writes() {
    say "writes"
    expect "files in the volume that are not of user 10001" "" "$(in_container -- find /data -not -uid 10001)"
    in_container -- find / -xdev -path /data -prune -o -uid 10001 -print >"$work/out" 2>/dev/null || true # some folders are root's alone
    expect "files of user 10001 elsewhere" "" "$(cat "$work/out")"
    in_container -- du -sh /data
}

say "base"
make_base
say "build"
seconds_before=$SECONDS
build "$@"
echo "built in $((SECONDS - seconds_before)) s"
container=$(images from --pull-never "$image")
start_server
check_image
check_commands
check_ended
check_limit
check_signal
check_writes
say "all good, in $SECONDS s"
