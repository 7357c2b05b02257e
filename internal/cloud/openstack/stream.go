package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxElement bounds one element of a listing, in bytes.
	maxElement = 256 << 10
	// maxElements bounds the elements of one page: a service may ignore the limit.
	maxElements = 100_000
)

// errElement is returned for an element that is too large.
var errElement = fmt.Errorf("an element of the listing is larger than %d KiB", maxElement>>10)

// bounded reads a body up to a limit that moves on with what was decoded.
type bounded struct {
	body        io.Reader
	read, limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read >= b.limit {
		return 0, errElement
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.limit-b.read)])
	b.read += int64(n)
	return n, err
}

// readList decodes the elements of a listing one at a time while it arrives, so that no
// page is in memory as a whole. It returns whether there are links to a further page.
func readList(call *call, body io.Reader, field string, element func(data []byte) error) (more bool, failed *cloud.Error) {
	in := &bounded{body: body, limit: math.MaxInt64}
	dec := json.NewDecoder(in)
	admit := func() { in.limit = dec.InputOffset() + 2*maxElement }
	admit()
	err := func() error {
		if token, err := dec.Token(); err != nil || token != json.Delim('{') {
			return orShape(err)
		}
		found := false
		for dec.More() {
			admit()
			name, err := dec.Token()
			switch {
			case err != nil:
				return err
			case name == field && found:
				return fmt.Errorf("the answer has two lists of %s", field)
			case name == field:
				found = true
				err = elements(dec, admit, element)
			default:
				var value json.RawMessage
				err = dec.Decode(&value)
				more = more || refersOn(field, name, value)
			}
			if err != nil {
				return err
			}
		}
		if _, err := dec.Token(); err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("the answer has no list of %s", field)
		}
		return nil
	}()
	if err == nil {
		return more, nil
	}
	return false, asListError(call, err)
}

// asListError returns the error of what took an element, or one that says why the answer
// cannot be read.
func asListError(call *call, err error) *cloud.Error {
	if known, ok := errors.AsType[*cloud.Error](err); ok {
		return known
	}
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errShape
	}
	return unreadable(call, err.Error())
}

var errShape = errors.New("the answer is not the JSON of a listing")

func orShape(err error) error {
	if err != nil {
		return err
	}
	return errShape
}

// elements reads the elements of the list.
func elements(dec *json.Decoder, admit func(), element func(data []byte) error) error {
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return orShape(err)
	}
	var data json.RawMessage
	for n := 1; dec.More(); n++ {
		if n > maxElements {
			return fmt.Errorf("the page has more than %d elements", maxElements)
		}
		admit()
		data = data[:0]
		if err := dec.Decode(&data); err != nil {
			return err
		}
		if err := element(data); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// refersOn reports whether a field beside the list refers to the following page: the links
// of the list or, of the image service, a path.
func refersOn(list string, name json.Token, value []byte) bool {
	switch name {
	case list + "_links":
		return hasNext(value)
	case "next":
		var path string
		return json.Unmarshal(value, &path) == nil && path != ""
	}
	return false
}

// hasNext reports whether one of the links is to the following page.
func hasNext(data []byte) bool {
	var links []struct {
		Rel string `json:"rel"`
	}
	if json.Unmarshal(data, &links) != nil {
		return false
	}
	for _, link := range links {
		if link.Rel == "next" {
			return true
		}
	}
	return false
}
