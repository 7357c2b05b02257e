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
	// maxRead and maxBytesRead bound the elements of all pages together.
	maxRead      = 20_000
	maxBytesRead = 32 << 20
)

// listPages reads all pages of a listing of networks, subnets or flavors. One bad
// element spoils it, since one that is left out would look gone. marker returns the id of
// an element, empty if the element cannot be used.
func listPages[T any](ctx context.Context, s *session, of *call, query url.Values, field string, marker func(T) string) ([]T, *cloud.Error) {
	all, bytes := []T{}, 0
	query.Set("limit", fmt.Sprint(pageSize))
	for range maxPages {
		call := *of
		call.query, call.limit = query, maxList
		var page []T
		var size int
		var more bool
		call.stream = func(body io.Reader) (failed *cloud.Error) {
			page, size = page[:0], 0
			more, failed = readList(&call, body, field, func(data []byte) error {
				size += len(data)
				if len(all)+len(page) >= maxRead || bytes+size > maxBytesRead {
					return fmt.Errorf("the cloud lists more %s than the operator reads: at most %d, and %d MiB", field, maxRead, maxBytesRead>>20)
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
			return nil, err
		}
		all, bytes = append(all, page...), bytes+size
		if !more || len(page) == 0 {
			return all, nil
		}
		query.Set("marker", marker(page[len(page)-1]))
	}
	return nil, refuse(of.op, cloud.Unreadable, "the list of %s does not end", field)
}
