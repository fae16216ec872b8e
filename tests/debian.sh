# Which release of Debian has which PostgreSQL, and how a root of one is made. For scripts that read it in.

# release_with MAJOR: prints the name of the release; fails where none has it.
release_with() {
    case $1 in
        15) echo bookworm ;;
        17) echo trixie ;;
        18) echo forky ;;
        *) echo "no Debian has PostgreSQL $1" >&2; return 1 ;;
    esac
}

# make_root RELEASE FOLDER [OPTION...]: as root, or by sudo.
make_root() {
    local release=$1 folder=$2 as_root=() script=()
    shift 2
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    # Releases that this machine's debootstrap does not know are made like the one before them.
    [ -e "/usr/share/debootstrap/scripts/$release" ] || script=(/usr/share/debootstrap/scripts/sid)
    "${as_root[@]}" debootstrap --variant=minbase "$@" "$release" "$folder" "${EDDY_DEBIAN_MIRROR:-}" "${script[@]}" >&2
}
