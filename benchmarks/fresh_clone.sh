#!/usr/bin/env bash
# Bar 5: what a newcomer gets. Clones the committed HEAD into an empty folder and times make demo and make test.
set -eu
project=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone -q "$project" "$folder/clone"
cd "$folder/clone"
for target in demo test; do
  began=$(date +%s)
  make "$target" > "$folder/$target.log" 2>&1 || { tail -n 40 "$folder/$target.log"; echo "make $target: FAILED"; exit 1; }
  echo "make $target: ok in $(( $(date +%s) - began )) s, installation included"
done
