package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const serveUsage = `usage: image serve --dir DIR --listen ADDRESS [--listen ADDRESS]... --cert FILE --key FILE

Serves a registry over TLS. Blobs and manifests are stored in DIR and survive a restart. For tests only: there is no
authentication.

`

func serveCommand(args []string) error {
	var addresses []string
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), serveUsage); flags.PrintDefaults() }
	dir := flags.String("dir", "", "`DIR` to store images in")
	cert, key := flags.String("cert", "", "certificate `FILE`"), flags.String("key", "", "key `FILE`")
	flags.Func("listen", "`ADDRESS` to listen on; may be repeated", func(value string) error {
		addresses = append(addresses, value)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || *cert == "" || *key == "" || len(addresses) == 0 {
		return errors.New("want --dir, --listen, --cert and --key: see image serve --help")
	}
	handler, err := newStore(*dir)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for _, address := range addresses {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.ListenAndServeTLS(*cert, *key) }()
	}
	return <-failed
}

// store is a registry that also writes the manifests, which the library has in memory, to disk.
type store struct {
	dir      string
	registry http.Handler
}

// stored is a manifest on disk, with the request that stored it.
type stored struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	Manifest []byte `json:"manifest"`
}

func newStore(dir string) (*store, error) {
	blobs, manifests := filepath.Join(dir, "blobs"), filepath.Join(dir, "manifests")
	for _, folder := range []string{blobs, manifests} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	s := &store{dir: manifests, registry: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)))}
	if err := s.replay(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *store) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !strings.Contains(req.URL.Path, "/manifests/") || req.Method != http.MethodPut && req.Method != http.MethodDelete {
		s.registry.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 8<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	recorder := &statusRecorder{ResponseWriter: w}
	s.registry.ServeHTTP(recorder, req)
	if recorder.status >= http.StatusMultipleChoices {
		return
	}
	if err := s.persist(req, w.Header().Get("Docker-Content-Digest"), body); err != nil {
		fmt.Fprintf(os.Stderr, "store %s: %v\n", req.URL.Path, err)
		// The successful response is still in the buffer and must not be sent.
		panic(http.ErrAbortHandler)
	}
}

// statusRecorder records the status of the response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *statusRecorder) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// persist applies the request, which has changed the memory, to the disk. A manifest is stored by its tag and by its
// digest, by which it exists after the tag has moved.
func (s *store) persist(req *http.Request, digest string, body []byte) error {
	if req.Method == http.MethodDelete {
		return os.Remove(s.file(req.URL.Path))
	}
	for _, where := range []string{path.Join(path.Dir(req.URL.Path), digest), req.URL.Path} {
		data, err := json.Marshal(stored{Path: where, Type: req.Header.Get("Content-Type"), Manifest: body})
		if err != nil {
			return err
		}
		if err := replace(s.file(where), data); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) file(where string) string {
	return filepath.Join(s.dir, url.PathEscape(where))
}

// replace writes a file atomically.
func replace(file string, data []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return err
	}
	_, err = fresh.Write(data)
	if err := errors.Join(err, fresh.Close()); err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return os.Rename(fresh.Name(), file)
}

// replay loads the manifests on disk: images first, because an index is rejected before its images exist.
func (s *store) replay() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "[^.]*"))
	if err != nil {
		return err
	}
	var images, indexes []stored
	for _, file := range files {
		var one stored
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &one); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if types.MediaType(one.Type).IsIndex() {
			indexes = append(indexes, one)
		} else {
			images = append(images, one)
		}
	}
	for _, one := range slices.Concat(images, indexes) {
		if err := s.put(one); err != nil {
			return fmt.Errorf("load %s: %w", one.Path, err)
		}
	}
	return nil
}

func (s *store) put(one stored) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, one.Path, bytes.NewReader(one.Manifest))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", one.Type)
	recorder := &statusRecorder{ResponseWriter: discard{}}
	s.registry.ServeHTTP(recorder, req)
	if recorder.status != http.StatusCreated {
		return fmt.Errorf("it was rejected with status %d", recorder.status)
	}
	return nil
}

// discard discards a response.
type discard struct{}

// Header implements http.ResponseWriter.
func (discard) Header() http.Header { return http.Header{} }

// Write implements http.ResponseWriter.
func (discard) Write(data []byte) (int, error) { return len(data), nil }

// WriteHeader implements http.ResponseWriter.
func (discard) WriteHeader(int) {}
