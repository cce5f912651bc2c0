#!/usr/bin/env bash
# The programs of the control plane that the tests run against, in one directory, whose path is the last line on stdout.
#
# usage: build.sh          builds what is missing (13 minutes on two cores the first time, seconds afterwards)
#        build.sh --find   builds nothing: says what is missing and fails
#
# Each program is taken from the first place that has it: $KUBEBUILDER_ASSETS (whatever its version), what was built here
# before, PATH (if its version is the one asked for), a build from the Go modules beside this script. Builds are kept in
# $DRIFT_TEST_CACHE, else ${XDG_CACHE_HOME:-~/.cache}/helm-drift/control-plane, in a folder named after what they are made of.
set -euo pipefail

etcd=3.6.13 kubernetes=1.36.3 helm3=3.22.0 helm4=4.3.1 krew=0.4.3
client_go=1.37 # of Helm 3's module: what `helm template` takes as the cluster's version
programs="etcd kube-apiserver kube-controller-manager kubectl helm3 helm4 kubectl-krew"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${DRIFT_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?names the cache directory}/.cache}/helm-drift/control-plane}
[[ $cache == /* ]] || cache=$PWD/$cache

say() { printf 'control plane: %s\n' "$*" >&2; }

# module PROGRAM: the folder of the Go module that builds it
module() {
  case $1 in
    kubectl-krew) echo krew ;;
    kube*) echo kube ;;
    *) echo "$1" ;;
  esac
}

# version PROGRAM: the version asked for
version() {
  case $1 in
    kubectl-krew) echo "$krew" ;;
    kube*) echo "$kubernetes" ;;
    *) echo "${!1}" ;;
  esac
}

# version_of PROGRAM FILE: the version that a file on PATH says it has, or nothing
version_of() {
  case $1 in
    etcd) "$2" --version | sed -n 's/^etcd Version: //p' ;;
    kubectl-krew) "$2" version | sed -n 's/^GitTag *v//p' ;;
    kubectl) "$2" version --client -o json | sed -n 's/.*"gitVersion": "v\(.*\)".*/\1/p' ;;
    kube-*) "$2" --version | sed -n 's/^Kubernetes v//p' ;;
    helm*) "$2" version --template '{{.Version}}' | sed 's/^v//' ;;
  esac 2>/dev/null </dev/null || true
}

# compile MODULE DIRECTORY: builds a module's programs into a directory
compile() {
  local flags="-s -w" package
  cd "$here/$1"
  case $1 in
    kube)
      for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=v$kubernetes -X $package.gitMajor=${kubernetes%%.*} -X $package.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
      done
      go build -trimpath -buildvcs=false -ldflags "$flags" -o "$2/" k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kubectl}
      ;;
    etcd) go build -trimpath -buildvcs=false -ldflags "$flags" -o "$2/etcd" go.etcd.io/etcd/server/v3 ;;
    helm3)
      flags+=" -X helm.sh/helm/v3/internal/version.version=v$helm3"
      for package in helm.sh/helm/v3/pkg/chartutil helm.sh/helm/v3/pkg/lint/rules; do
        flags+=" -X $package.k8sVersionMajor=${client_go%%.*} -X $package.k8sVersionMinor=${client_go##*.}"
      done
      go build -trimpath -buildvcs=false -ldflags "$flags" -o "$2/helm3" helm.sh/helm/v3/cmd/helm
      ;;
    helm4) go build -trimpath -buildvcs=false -ldflags "$flags -X helm.sh/helm/v4/internal/version.version=v$helm4" -o "$2/helm4" helm.sh/helm/v4/cmd/helm ;;
  esac
}

made_of=$({ cat "$here"/{etcd,kube,helm3,helm4}/go.{mod,sum}; declare -f compile; echo "$etcd $kubernetes $helm3 $helm4 $client_go"; uname -sm; } | git hash-object --stdin | cut -c1-16)
built=$cache/$made_of
# In a folder of its own: it takes seconds to build, and nothing of it shall make the others be built anew.
compile_krew() {
  local package=sigs.k8s.io/krew/internal/version
  cd "$here/krew"
  go build -trimpath -buildvcs=false -ldflags "-s -w -X $package.gitTag=v$krew" -o "$1/kubectl-krew" sigs.k8s.io/krew/cmd/krew
}
built_krew=$cache/krew-$({ cat "$here"/krew/go.{mod,sum}; declare -f compile_krew; echo "$krew"; uname -sm; } | git hash-object --stdin | cut -c1-16)

# home MODULE: the folder that its programs are kept in
home() { if [ "$1" = krew ]; then echo "$built_krew"; else echo "$built"; fi; }

# place PROGRAM: the file to use, or nothing
place() {
  local name file kept
  kept=$(home "$(module "$1")")
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
    echo "$KUBEBUILDER_ASSETS/$1"
  elif [ -x "$kept/$1" ]; then
    echo "$kept/$1"
  else
    for name in "$1" $([[ $1 == helm* ]] && echo helm); do
      file=$(command -v "$name" || true)
      if [ -n "$file" ] && [ "$(version_of "$1" "$file")" = "$(version "$1")" ]; then
        echo "$file"
        return
      fi
    done
  fi
}

# missing: the programs that no place has
missing() {
  local program
  for program in $programs; do
    [ -n "$(place "$program")" ] || echo "$program"
  done
}

# list PROGRAM...: their names and versions, for a message
list() {
  local program text=
  for program in "$@"; do text+="${text:+, }$program $(version "$program")"; done
  echo "$text"
}

# newest VERSION...: the highest
newest() { printf '%s\n' "$@" | sort -t. -k1,1n -k2,2n -k3,3n | tail -n 1; }

# build MODULE: compiles beside the place and moves each program there in one step
build() {
  local scratch beat program kept
  kept=$(home "$1")
  mkdir -p "$kept"
  scratch=$(mktemp -d "$kept/.build-XXXXXX")
  say "building $1 ($(cd "$here/$1" && go env GOVERSION))"
  (while :; do for _ in {1..60}; do sleep 1; done; say "still building $1"; done) >/dev/null &
  beat=$!
  trap 'kill '$beat' 2>/dev/null; rm -rf "'"$scratch"'"' EXIT
  if [ "$1" = krew ]; then (compile_krew "$scratch") >&2; else (compile "$1" "$scratch") >&2; fi
  for program in "$scratch"/*; do mv -f "$program" "$kept/"; done
  kill "$beat" 2>/dev/null || true
  rmdir "$scratch"
  trap - EXIT
}

absent=$(missing)
if [ -n "$absent" ] && [ "${1:-}" = --find ]; then
  say "missing: $(list $absent)"
  say "build them with tests/control-plane/build.sh, or set KUBEBUILDER_ASSETS to a directory that holds them"
  exit 1
fi
if [ -n "$absent" ]; then
  wanted=$(sed -n 's/^go //p' "$here/kube/go.mod")
  if ! command -v go >/dev/null; then
    say "missing, and there is no Go to build them with: $(list $absent)"
    say "install Go $wanted or newer (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory that holds them"
    exit 1
  fi
  # go.sum decides what is built, and an older Go may fetch the one that the modules ask for.
  export GOFLAGS=-mod=readonly GOWORK=off
  installed=$(GOTOOLCHAIN=local go env GOVERSION)
  if [ "$(newest "${installed#go}" "$wanted")" = "${installed#go}" ]; then export GOTOOLCHAIN=local; fi
  mkdir -p "$built"
  if command -v flock >/dev/null; then
    exec 9>"$cache/lock"
    flock -n 9 || { say "waiting for another build"; flock 9; }
  fi
  started=$SECONDS
  for folder in krew etcd helm3 helm4 kube; do
    for program in $(missing); do
      if [ "$(module "$program")" = "$folder" ]; then
        build "$folder"
        break
      fi
    done
  done
  absent=$(missing)
  if [ -n "$absent" ]; then
    say "built, but still missing: $(list $absent)"
    exit 1
  fi
  say "built in $((SECONDS - started)) s"
fi

# One directory for all: where they were built, or links to where each one is.
places=
for program in $programs; do places+="$program $(place "$program")"$'\n'; done
directory=$built
if grep -qvF " $built/" <<<"${places%$'\n'}"; then
  directory=$cache/links-$(git hash-object --stdin <<<"$places" | cut -c1-16)
  mkdir -p "$directory"
  while read -r program file; do [ -z "$program" ] || ln -sf "$file" "$directory/$program"; done <<<"$places"
fi
echo "$directory"
