# Sourced by users' scripts: programs are found once they are loaded, as on any cluster.
module() {
    [ "$1" = load ] || return 0
    shift
    local wanted
    for wanted in "$@"; do
        if [ ! -d "/home/apps/$wanted" ]; then
            echo "module: no such module: $wanted" >&2
            return 1
        fi
        PATH="/home/apps/$wanted/bin:$PATH"
        [ -d "/home/apps/$wanted/python" ] && export PYTHONPATH="/home/apps/$wanted/python"
        [ -d "/home/apps/$wanted/perl" ] && export PERL5LIB="/home/apps/$wanted/perl"
    done
    return 0
}
