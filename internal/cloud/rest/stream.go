package rest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxElement bounds one value of a listing, in bytes.
	maxElement = 256 << 10
	// maxDepth bounds the nesting of fields that are skipped.
	maxDepth = 1000
	// maxSkipped bounds what is skipped of one answer, in names, values and brackets:
	// each takes some microseconds.
	maxSkipped = 200_000
	// maxElements bounds the servers, networks or hosts of one answer.
	maxElements = 100_000
	// maxMemory bounds what is kept of a page that is not streamed, in bytes. Servers
	// with all fields and four labels take about a kilobyte each.
	maxMemory = 48 << 20
	// maxSmall bounds what is kept of the listing of hosts or networks, of which a
	// cloud has few, in bytes: 30,000 networks take as much.
	maxSmall = 8 << 20
)

// readStream reads the body of a listing while it arrives, so that no more of it
// is in memory than what is kept and one value.
func (x *exchange) readStream(ctx context.Context, call *call, got *answer, body io.Reader) *cloud.Error {
	in := newStream(body)
	err := call.stream(got, in)
	if in.source.err != nil {
		return x.noAnswer(ctx, call, in.source.err, true)
	}
	return err
}

// stream is JSON of which one value at a time is in memory.
type stream struct {
	source *source
	dec    *jsontext.Decoder
	// offset is how much of source precedes what dec reads.
	offset int64
	// skipped counts what skip has read.
	skipped int
	// started is set when the answer began as JSON of a list does.
	started bool
	// start is how the answer begins, after its byte order mark.
	start []byte
}

func newStream(body io.Reader) *stream {
	in := &source{body: body, limit: math.MaxInt64}
	s := &stream{source: in}
	buffered := bufio.NewReader(in)
	if start, _ := buffered.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		n, _ := buffered.Discard(len(start))
		s.offset = int64(n)
	}
	start, _ := buffered.Peek(min(buffered.Buffered(), maxStart))
	s.start = bytes.Clone(start)
	// As in encoding/json, the last of several fields with a name counts, and what is not
	// UTF-8 is replaced.
	s.dec = jsontext.NewDecoder(buffered, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return s
}

var errTooLarge = fmt.Errorf("a value in the answer is larger than %d KiB", maxElement>>10)

// source reads a body up to a limit that moves on with what was decoded.
type source struct {
	body        io.Reader
	read, limit int64
	// err is why the body could not be read to its end.
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.read >= s.limit {
		return 0, errTooLarge
	}
	n, err := s.body.Read(p[:min(int64(len(p)), s.limit-s.read)])
	s.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// admit allows the next value to be read.
func (s *stream) admit() { s.source.limit = s.offset + s.dec.InputOffset() + maxElement }

// more reports whether the array or object that is read has another value.
func (s *stream) more() bool {
	s.admit()
	kind := s.dec.PeekKind()
	return kind != jsontext.KindInvalid && kind != jsontext.KindEndArray && kind != jsontext.KindEndObject
}

// token returns the next token, which is valid until the following call.
func (s *stream) token() (jsontext.Token, error) {
	s.admit()
	return s.dec.ReadToken()
}

// next returns the next value, which is valid until the following call.
func (s *stream) next() ([]byte, error) {
	s.admit()
	return s.dec.ReadValue()
}

// skip reads the next value and drops it, however large it is.
func (s *stream) skip() error {
	for outside := s.dec.StackDepth(); ; {
		if _, err := s.token(); err != nil {
			return err
		}
		s.skipped++
		if s.skipped > maxSkipped {
			return unusable(fmt.Sprintf("the answer holds more than %d values beside the list", maxSkipped))
		}
		switch depth := s.dec.StackDepth() - outside; {
		case depth == 0:
			return nil
		case depth > maxDepth:
			return errInvalid
		}
	}
}

// unusable is why an answer cannot be used, in a text for people.
type unusable string

func (u unusable) Error() string { return string(u) }

const (
	errEmpty     unusable = "the answer is empty"
	errInvalid   unusable = "the answer is not valid JSON"
	errWrongType unusable = "a value of the wrong type in the answer"
)

// list is a listing: what it may look like, and what reads it.
type list struct {
	// noun is what is listed, and field the object's field that has the list.
	noun, field string
	// array allows a list that is not in an object, and object one that is.
	array, object bool
	// element reads the nth of the list, counted from 1.
	element func(n int, value []byte) error
	// marker reads the field next; nil for a listing without pages.
	marker func(value []byte) error
}

// read reads a listing and reports whether it is an object.
func (l *list) read(call *call, got *answer, in *stream) (object bool, failed *cloud.Error) {
	if got.html() {
		return false, unreadable(call, got.notJSON(nil, kindOfMedia(got)).Error())
	}
	object, err := l.decode(in)
	if err == nil {
		if _, err = in.token(); errors.Is(err, io.EOF) {
			return object, nil
		}
		if err == nil {
			err = errInvalid
		}
	}
	if refused, ok := errors.AsType[*cloud.Error](err); ok {
		return object, refused
	}
	text, ok := errors.AsType[unusable](err)
	switch {
	case !in.started && !got.jsonType():
		text = got.notJSON(in.start, kindOfStream(got, err))
	case errors.Is(err, errTooLarge):
		text = unusable(errTooLarge.Error())
	case !ok:
		text = in.invalid(got, err)
	}
	return object, unreadable(call, string(text))
}

func kindOfStream(got *answer, err error) string {
	if errors.Is(err, io.EOF) {
		return "empty"
	}
	return kindOfMedia(got)
}

func (l *list) decode(in *stream) (object bool, err error) {
	start, err := in.token()
	if err != nil {
		return false, err
	}
	kind := start.Kind()
	in.started = kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray
	switch {
	case kind == jsontext.KindBeginArray && l.array:
		return false, l.elements(in)
	case kind == jsontext.KindBeginObject && l.object:
		return true, l.members(in)
	case kind == jsontext.KindNull:
		return false, l.missing()
	default:
		return false, errWrongType
	}
}

func (l *list) missing() error { return unusable("the answer holds no list of " + l.noun) }

// members reads the fields of an object, the opening brace of which was read.
func (l *list) members(in *stream) error {
	found := false
	for in.more() {
		token, err := in.token()
		if err != nil {
			return err
		}
		switch name := token.String(); {
		case name == l.field:
			if found {
				return unusable("the answer holds two lists of " + l.noun)
			}
			found, err = l.member(in)
		case name == "next" && l.marker != nil:
			var value []byte
			if value, err = in.next(); err == nil {
				err = l.marker(value)
			}
		default:
			err = in.skip()
		}
		if err != nil {
			return err
		}
	}
	if _, err := in.token(); err != nil {
		return err
	}
	if !found {
		return l.missing()
	}
	return nil
}

// member reads the field that has the list, and reports whether it has one: null
// is none.
func (l *list) member(in *stream) (bool, error) {
	start, err := in.token()
	switch {
	case err != nil:
		return false, err
	case start.Kind() == jsontext.KindNull:
		return false, nil
	case start.Kind() != jsontext.KindBeginArray:
		return false, wrongType(l.field)
	}
	return true, l.elements(in)
}

// elements reads a list, the opening bracket of which was read.
func (l *list) elements(in *stream) error {
	for n := 1; in.more(); n++ {
		if n > maxElements {
			return unusable(fmt.Sprintf("the answer holds more than %d %s", maxElements, l.noun))
		}
		value, err := in.next()
		if err != nil {
			return err
		}
		if err := l.element(n, value); err != nil {
			return err
		}
	}
	_, err := in.token()
	return err
}

func wrongType(field string) error {
	return unusable(fmt.Sprintf("field %s of the answer has the wrong type", quote(field)))
}
