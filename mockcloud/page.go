package mockcloud

import (
	"embed"
	"net/http"
	"path"
)

// pageFiles are the files of the page for people.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy allows the files and calls of the admin port and nothing else: names of
// servers come from tenants. With trusted types, the browser refuses to parse a string
// as HTML.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pageTypes are the media types of the files by extension, whatever the machine's table
// of media types says.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// handlePage handles GET /.
func handlePage(w http.ResponseWriter, _ *request) error {
	return writePageFile(w, "index.html")
}

// handlePageFile handles GET /page/{name}.
func handlePageFile(w http.ResponseWriter, r *request) error {
	return writePageFile(w, r.vars[0])
}

func writePageFile(w http.ResponseWriter, name string) error {
	data, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		return notFound("file of the page", name)
	}
	header := w.Header()
	header.Set("Content-Type", pageTypes[path.Ext(name)])
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	_, _ = w.Write(data)
	return nil
}
