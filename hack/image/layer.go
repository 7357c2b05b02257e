package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// entry is one file, folder or link of a tree. The content of a file is read from source; it is content if source is "".
type entry struct {
	header  tar.Header
	source  string
	content string
}

// tree has the entries of a layer by their path without a leading slash. Later entries replace earlier ones.
type tree map[string]entry

func (t tree) add(where string, e entry) {
	where = strings.TrimPrefix(path.Clean("/"+where), "/")
	if where == "" {
		return
	}
	for parent := path.Dir(where); parent != "."; parent = path.Dir(parent) {
		if _, ok := t[parent]; !ok {
			t[parent] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
		}
	}
	t[where] = e
}

func (t tree) addDir(where string, mode int64) {
	t.add(where, entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: mode}})
}

func (t tree) addLink(target, where string) {
	t.add(where, entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}})
}

func (t tree) addText(content, where string) {
	t.add(where, entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}, content: content})
}

// addPath adds the file source as where, or the contents of the folder source below where. It follows source if it is
// a link. Links in a folder are kept.
func (t tree) addPath(source, where string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return t.addInfo(name, path.Join(where, filepath.ToSlash(below)), info)
	})
}

func (t tree) addInfo(name, where string, info fs.FileInfo) error {
	switch info.Mode().Type() {
	case fs.ModeDir:
		t.addDir(where, 0o755)
	case fs.ModeSymlink:
		target, err := os.Readlink(name)
		if err != nil {
			return err
		}
		t.addLink(target, where)
	case 0:
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		t.add(where, entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: mode, Size: info.Size()}, source: name})
	default:
		return fmt.Errorf("%s is not a file, a folder or a link", name)
	}
	return nil
}

// layer packs the tree, sorted by path, owned by root, with the epoch as the modification time. go.mod pins the
// compressor, so that the digest does not depend on the Go version.
func (t tree) layer(mediaType types.MediaType) (v1.Layer, error) {
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressor)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := t[name].write(archive, name); err != nil {
			return nil, fmt.Errorf("pack /%s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(mediaType))
}

func (e entry) write(archive *tar.Writer, name string) error {
	header := e.header
	header.Name, header.ModTime, header.Format = name, time.Unix(0, 0), tar.FormatPAX
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	if e.source == "" {
		_, err := io.WriteString(archive, e.content)
		return err
	}
	file, err := os.Open(e.source)
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return errors.Join(err, file.Close())
}
