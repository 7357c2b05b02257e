# shellcheck shell=bash
# Functions of the scripts that install Debian packages into a folder. The host is left as it is.

# archives prints the archives of Debian 12 that the host uses, as lines of a sources.list.
archives() {
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    grep -E ' (bookworm|bookworm-security|bookworm-updates) main$' | sort -u
}

# extracted PACKAGE FOLDER: downloads a Debian package and extracts it into FOLDER, unless FOLDER exists. The lists of the
# host may be missing or old, and are left as they are.
extracted() {
  local package=$1 folder=$2 new=$2.new
  [ ! -e "$folder" ] || return 0
  local apt=(apt-get -q -o "Dir::State::Lists=$new/lists" -o "Dir::Cache=$new/cache")
  rm -rf "$new"
  mkdir -p "$new/lists/partial" "$new/cache/archives/partial"
  "${apt[@]}" update
  (cd "$new" && "${apt[@]}" download "$package" && dpkg-deb --extract "$package"_*.deb . && rm -r "$package"_*.deb lists cache)
  mv "$new" "$folder"
}
