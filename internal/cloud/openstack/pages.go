package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// pageSize is how many elements are asked for at once, and maxPages bounds the pages
	// of a listing.
	pageSize = 500
	maxPages = 200
)

// bounds bound the elements of all pages of a listing together.
type bounds struct{ elements, bytes int }

// keptBounds are those of listings that are kept as a whole.
var keptBounds = bounds{elements: 20_000, bytes: 32 << 20}

// listPages reads all pages of a listing, such as that of networks or flavors. One bad
// element spoils it, since one that is left out would look gone. marker returns the id of
// an element, empty if the element cannot be used.
func listPages[T any](ctx context.Context, s *session, of *call, query url.Values, field string, marker func(T) string) ([]T, *cloud.Error) {
	all := []T{}
	err := walkPages(ctx, s, of, query, field, keptBounds, marker, func(page []T) { all = append(all, page...) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// walkPages is listPages that passes each page on, which is valid until the next one.
func walkPages[T any](
	ctx context.Context, s *session, of *call, query url.Values, field string, most bounds, marker func(T) string, take func(page []T),
) *cloud.Error {
	var read bounds
	var page []T
	query.Set("limit", fmt.Sprint(pageSize))
	for range maxPages {
		call := *of
		call.query, call.limit = query, maxList
		var size int
		var more bool
		call.stream = func(body io.Reader) (failed *cloud.Error) {
			page, size = page[:0], 0
			more, failed = readList(&call, body, field, func(data []byte) error {
				size += len(data)
				if read.elements+len(page) >= most.elements || read.bytes+size > most.bytes {
					return fmt.Errorf("the cloud lists more %s than the operator reads: at most %d, and %d MiB", field, most.elements, most.bytes>>20)
				}
				var element T
				if json.Unmarshal(data, &element) != nil || marker(element) == "" {
					return errors.New("an element of the list of " + field + " cannot be read")
				}
				page = append(page, element)
				return nil
			})
			return failed
		}
		if err := s.do(ctx, &call); err != nil {
			return err
		}
		take(page)
		read.elements, read.bytes = read.elements+len(page), read.bytes+size
		if !more || len(page) == 0 {
			return nil
		}
		query.Set("marker", marker(page[len(page)-1]))
	}
	return refuse(of.op, cloud.Unreadable, "the list of %s does not end", field)
}
