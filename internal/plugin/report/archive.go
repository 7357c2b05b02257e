package report

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// manifest lists what is in a bundle.
type manifest struct {
	Created time.Time `json:"created"`
	Plugin  string    `json:"plugin"`
	// Namespace is that of the objects, empty for all.
	Namespace         string `json:"namespace,omitempty"`
	OperatorNamespace string `json:"operatorNamespace"`
	Files             []file `json:"files"`
	// LeftOut is what could not be collected, or not completely.
	LeftOut []leftOut `json:"leftOut"`
}

// file is one file of a bundle.
type file struct {
	Name string `json:"name"`
	// Bytes is its size before it is compressed.
	Bytes int64 `json:"bytes"`
	// Objects is how many objects, or lines of a log, are in it.
	Objects int `json:"objects,omitempty"`
}

// leftOut is what a bundle lacks.
type leftOut struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// archive is a bundle that is being written.
type archive struct {
	path      string
	temporary *os.File
	zip       *zip.Writer
	manifest  manifest
}

// create begins a bundle in a temporary file beside it, which only the user can read.
func create(path string) (*archive, error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	return &archive{path: path, temporary: temporary, zip: zip.NewWriter(temporary), manifest: manifest{Files: []file{}, LeftOut: []leftOut{}}}, nil
}

// add writes a file of the bundle. fill returns how many objects or lines it wrote.
func (a *archive) add(name string, fill func(io.Writer) (int, error)) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: a.manifest.Created}
	header.SetMode(0o600)
	entry, err := a.zip.CreateHeader(header)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	counted := &counter{writer: entry}
	objects, err := fill(counted)
	a.manifest.Files = append(a.manifest.Files, file{Name: name, Bytes: counted.bytes, Objects: objects})
	return err
}

// finish writes the manifest, and gives the bundle its name unless there is such a file now.
func (a *archive) finish() error {
	if err := a.add("manifest.json", func(out io.Writer) (int, error) { return 0, writeJSON(out, a.manifest) }); err != nil {
		return err
	}
	if err := errors.Join(a.zip.Close(), a.temporary.Sync(), a.temporary.Close()); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	// A link fails where a rename would overwrite.
	err := os.Link(a.temporary.Name(), a.path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return exists(a.path)
	case err != nil: // a file system without links
		if _, err := os.Lstat(a.path); err == nil {
			return exists(a.path)
		}
		if err := os.Rename(a.temporary.Name(), a.path); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	return nil
}

// discard removes the temporary file.
func (a *archive) discard() {
	_ = a.temporary.Close()
	_ = os.Remove(a.temporary.Name())
}

// counter counts what is written.
type counter struct {
	writer io.Writer
	bytes  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.writer.Write(p)
	c.bytes += int64(n)
	if err != nil {
		return n, &writeError{err}
	}
	return n, nil
}

// writeError is an error of the file, not of the cluster: the bundle cannot be written.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write the bundle: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
