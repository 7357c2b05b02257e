// Package openapi checks requests and responses against the OpenAPI document of the
// private cloud. The tests of the mock cloud and of its clients use it, so that
// both conform to the same document.
package openapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/privatecloud/operator/mockcloud"
)

var document = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(mockcloud.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("loading OpenAPI document: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validating OpenAPI document: %w", err)
	}
	return doc, nil
})

// Document returns the parsed document, the same one on each call. It returns an
// error if the document is invalid.
func Document() (*openapi3.T, error) { return document() }

// adminPaths are the endpoints of the mock cloud that are not in the document: those
// of its admin port and those beside the REST API.
var adminPaths = []string{
	"/faults", "/ledger", "/calls", "/admin", "/metrics", "/healthz", "/readyz", "/openapi.json",
}

// Admin reports whether a path is an endpoint that is not in the document.
func Admin(path string) bool {
	for _, prefix := range adminPaths {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

var options = &openapi3filter.Options{
	MultiError:                        true,
	IncludeResponseStatus:             true,
	RejectWhenRequestBodyNotSpecified: true,
	SkipSettingDefaults:               true,
	// Other tests check authentication.
	AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
}

// CheckRequest returns an error if a request with this body violates the document.
// It does not read the body of the request.
func CheckRequest(r *http.Request, body []byte) error {
	input, err := inputOf(r, body)
	if err != nil {
		return err
	}
	if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
		return fmt.Errorf("request %s %s: %w", r.Method, r.URL.EscapedPath(), err)
	}
	return nil
}

// CheckAnswer returns an error if a response violates the document. It does not
// check the body of an event stream.
func CheckAnswer(r *http.Request, status int, header http.Header, body []byte) error {
	input, err := inputOf(r, nil)
	if err != nil {
		return err
	}
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: header, Options: options,
	}
	if streaming(header) {
		plain := *options
		plain.ExcludeResponseBody = true
		answer.Options = &plain
	}
	answer.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(r.Context(), answer); err != nil {
		return fmt.Errorf("answer %d to %s %s: %w", status, r.Method, r.URL.EscapedPath(), err)
	}
	return nil
}

func streaming(header http.Header) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")
}

// quirky reports whether the mock cloud has quirks by which its responses do not
// conform to the document.
func quirky(header http.Header) bool { return header.Get(mockcloud.QuirksHeader) != "" }

// inputOf returns the input of the validation for a copy of the request, because
// the validation reads its body.
func inputOf(r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	route, params, err := find(doc, r)
	if err != nil {
		return nil, err
	}
	clone := r.Clone(r.Context())
	clone.Body = nil
	if len(body) > 0 {
		clone.Body = io.NopCloser(bytes.NewReader(body))
		clone.ContentLength = int64(len(body))
	}
	return &openapi3filter.RequestValidationInput{
		Request: clone, PathParams: params, Route: route, Options: options,
	}, nil
}

// find returns the route of a request. It matches the escaped path, so that an
// escaped slash does not separate segments. The routers of the library match the
// decoded path.
func find(doc *openapi3.T, r *http.Request) (*routers.Route, map[string]string, error) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for template, item := range doc.Paths.Map() {
		params, matches := match(strings.Split(template, "/"), parts)
		if !matches {
			continue
		}
		operation := item.GetOperation(r.Method)
		if operation == nil {
			return nil, nil, fmt.Errorf("request %s %s: the document has no such method there", r.Method, r.URL.EscapedPath())
		}
		return &routers.Route{
			Spec: doc, Path: template, PathItem: item, Method: r.Method, Operation: operation,
		}, params, nil
	}
	return nil, nil, fmt.Errorf("request %s %s: the document has no such path", r.Method, r.URL.EscapedPath())
}

func match(template, parts []string) (map[string]string, bool) {
	if len(template) != len(parts) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range template {
		decoded, err := url.PathUnescape(parts[i])
		switch {
		case err != nil:
			return nil, false
		case strings.HasPrefix(segment, "{"):
			params[strings.Trim(segment, "{}")] = decoded
		case segment != decoded:
			return nil, false
		}
	}
	return params, true
}
