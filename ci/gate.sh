#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The steps of ci/action.yml and ci/gitlab.yml, so that they can be tried without either:
#
#   gate.sh install FOLDER    the released program, checked against its checksum, into FOLDER
#   gate.sh measure           runs 'assay gate'; leaves gate.md, gate.xml, gate.html, gate.code
#   gate.sh github | gitlab   one comment on the pull or merge request, updated later
#   gate.sh status            ends as the policy says: a regression fails; what could not be told is
#                             neutral, unless the policy is another
#
# What to do stands in the environment: ASSAY_COMMAND, ASSAY_BUILD, ASSAY_BASE, ASSAY_MAX_REGRESSION,
# ASSAY_BUDGET, ASSAY_JUDGE, ASSAY_METRIC; ASSAY_INCONCLUSIVE says what an inconclusive gate is: neutral
# (a warning, and exit code 3 where ASSAY_NEUTRAL_CODE is 3), fail, or pass.  ASSAY_RELEASES and ASSAY_VERSION say where the release is; ASSAY_OUT is the folder for
# the files.
set -euo pipefail
out=${ASSAY_OUT:-assay-gate}
mark='<!-- assay gate -->'
die() { printf 'assay: %s\n' "$*" >&2; exit 125; }

install_release() {
    local folder=$1 name
    : "${ASSAY_RELEASES:?the address of the folder of releases}" "${ASSAY_VERSION:?}"
    name=assay-$ASSAY_VERSION-$(uname -m)-linux
    mkdir -p "$folder"
    curl -fsSL --retry 3 -o "$folder/$name.tar.xz" "$ASSAY_RELEASES/$name.tar.xz" ||
        die "cannot fetch $ASSAY_RELEASES/$name.tar.xz"
    curl -fsSL --retry 3 -o "$folder/SHA256SUMS" "$ASSAY_RELEASES/SHA256SUMS" ||
        die "cannot fetch $ASSAY_RELEASES/SHA256SUMS"
    (cd "$folder" && grep -F "$name.tar.xz" SHA256SUMS | sha256sum --check --quiet --strict -) ||
        die "$name.tar.xz does not have the checksum of the release"
    tar -xJf "$folder/$name.tar.xz" -C "$folder"
    echo "$folder/$name/bin"
}

# What an inconclusive gate is; a typo is found before anything is measured.
policy() {
    case "${ASSAY_INCONCLUSIVE:-neutral}" in
    neutral | fail | pass) echo "${ASSAY_INCONCLUSIVE:-neutral}" ;;
    *) die "ASSAY_INCONCLUSIVE is '$ASSAY_INCONCLUSIVE'; it must be neutral, fail or pass" ;;
    esac
}

measure() {
    : "${ASSAY_COMMAND:?what to measure}" "${ASSAY_BASE:?the commit to compare with}"
    local code=0 words=()
    mkdir -p "$out"
    policy >/dev/null
    [ -z "${ASSAY_JUDGE:-}" ] || words+=(--judge "$ASSAY_JUDGE")
    [ -z "${ASSAY_METRIC:-}" ] || words+=(--metric "$ASSAY_METRIC")
    [ -z "${ASSAY_BUILD:-}" ] || words+=(--build "$ASSAY_BUILD")
    [ -z "${GITHUB_STEP_SUMMARY:-}" ] || words+=(--summary "$GITHUB_STEP_SUMMARY")
    rm -f "$out/gate.db" "$out/gate.md"
    assay gate --base "$ASSAY_BASE" --max-regression "${ASSAY_MAX_REGRESSION:-5%}" \
        --budget "${ASSAY_BUDGET:-5m}" --db "$out/gate.db" --markdown "$out/gate.md" \
        --junit "$out/gate.xml" "${words[@]}" -- "$ASSAY_COMMAND" || code=$?
    [ ! -e "$out/gate.db" ] || assay html --db "$out/gate.db" last -o "$out/gate.html" || true
    echo "$code" >"$out/gate.code"
    [ "$code" -lt 4 ] || die "the gate could not be run (exit code $code)"
}

# The text as a JSON string, with python3 or jq, whichever the runner has.
json_body() {
    if command -v jq >/dev/null; then
        jq -Rs '{body: .}' <"$1"
    else
        python3 -c 'import json, sys; print(json.dumps({"body": sys.stdin.read()}))' <"$1"
    fi
}

# How many objects a JSON array has, and the id of the first whose body begins with the mark, if any.
marked_id() {
    if command -v jq >/dev/null; then
        jq -r --arg mark "$mark" '"\(length) \(map(select(.body // "" | startswith($mark))) | .[0].id // "")"'
    else
        python3 -c 'import json, sys
comments = json.load(sys.stdin)
found = [c["id"] for c in comments if (c["body"] or "").startswith(sys.argv[1])]
print(len(comments), found[0] if found else "")' "$mark"
    fi
}

# comment LIST PREFIX METHOD HEADER…: updates our comment of the list, at PREFIX/ID, or adds one.
comment() {
    local list=$1 prefix=$2 method=$3 id='' found count page=0
    shift 3
    [ -s "$out/gate.md" ] || die "there is no $out/gate.md; run 'gate.sh measure' first"
    count=100
    while [ "$count" -ge 100 ] && [ -z "$id" ]; do
        page=$((page + 1))
        found=$(curl -fsS "$@" "$list?per_page=100&page=$page" | marked_id) ||
            die "cannot read the comments of $list"
        read -r count id <<<"$found"
    done
    json_body "$out/gate.md" >"$out/comment.json"
    if [ -n "$id" ]; then
        curl -fsS -X "$method" "$@" -H 'Content-Type: application/json' \
            --data-binary "@$out/comment.json" -o /dev/null "$prefix/$id" || die "cannot update the comment"
    else
        curl -fsS -X POST "$@" -H 'Content-Type: application/json' \
            --data-binary "@$out/comment.json" -o /dev/null "$list" || die "cannot add a comment"
    fi
}

github() {
    : "${GITHUB_TOKEN:?}" "${GITHUB_REPOSITORY:?}" "${ASSAY_REQUEST:?the number of the pull request}"
    local api=${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY/issues
    comment "$api/$ASSAY_REQUEST/comments" "$api/comments" PATCH \
        -H "Authorization: Bearer $GITHUB_TOKEN" -H 'Accept: application/vnd.github+json'
}

gitlab() {
    : "${GITLAB_TOKEN:?}" "${CI_API_V4_URL:?}" "${CI_PROJECT_ID:?}" "${CI_MERGE_REQUEST_IID:?}"
    local api=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes
    comment "$api" "$api" PUT -H "PRIVATE-TOKEN: $GITLAB_TOKEN"
}

# The machine could not tell: nothing was checked, and nobody may take that for a pass.
inconclusive() {
    local text='inconclusive: this machine could not tell, so the change was not checked'
    [ "$1" != fail ] || {
        echo "::error title=assay gate::$text (the policy is to fail)"
        exit 1
    }
    echo "::warning title=assay gate::$text"
    [ -z "${GITHUB_STEP_SUMMARY:-}" ] ||
        printf '\n**assay gate: %s.** Policy: %s.\n' "$text" "$1" >>"$GITHUB_STEP_SUMMARY"
    [ "$1" = pass ] || exit "${ASSAY_NEUTRAL_CODE:-0}"
}

status() {
    local code chosen
    code=$(cat "$out/gate.code" 2>/dev/null) || die "there is no $out/gate.code; run 'gate.sh measure' first"
    case "$code" in
    0) ;;
    3)
        chosen=$(policy)
        inconclusive "$chosen"
        ;;
    *) exit "$code" ;;
    esac
}

case "${1:-}" in
install) install_release "${2:?a folder}" ;;
measure | github | gitlab | status) "$1" ;;
*) die "usage: gate.sh install FOLDER | measure | github | gitlab | status" ;;
esac
