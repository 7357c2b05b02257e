package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/privatecloud/operator/internal/cloud"
)

// The types of events. Others are skipped.
const (
	eventReady   = "ready"
	eventCreated = "server.created"
	eventUpdated = "server.updated"
	eventDeleted = "server.deleted"
)

// maxToken bounds the token of an event, in bytes: it becomes part of a URL.
const maxToken = 4096

// event is the data of one server-sent event. Id and server are JSON.
type event struct {
	token, kind string
	id, server  []byte
}

// eventReader reads server-sent events. One at a time is in memory.
type eventReader struct {
	lines *bufio.Reader
	// size is that of the event which is being read, in bytes.
	size int
	// broken is set when the stream could not be read on.
	broken bool
}

func newEventReader(body io.Reader) *eventReader { return &eventReader{lines: bufio.NewReader(body)} }

// next returns the next event. Its error is io.EOF at the end of the stream.
func (r *eventReader) next() (event, error) {
	for {
		data, err := r.data()
		if err != nil {
			return event{}, err
		}
		if len(data) > 0 {
			return decodeEvent(data)
		}
	}
}

// data returns the data of the next event, empty if it has none. Other fields do not
// matter: the data repeats them.
func (r *eventReader) data() ([]byte, error) {
	var data []byte
	r.size = 0
	for {
		line, err := r.line()
		if err != nil || len(line) == 0 {
			return data, err
		}
		value, found := bytes.CutPrefix(line, []byte("data:"))
		if !found {
			continue
		}
		if data != nil {
			data = append(data, '\n')
		}
		data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
	}
}

// line returns the next line without its end.
func (r *eventReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		if r.size += len(part); r.size > maxElement {
			return nil, errTooLarge
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, io.EOF):
			return nil, io.EOF // what was not ended does not count
		default:
			r.broken = true
			return nil, err
		}
	}
}

func decodeEvent(data []byte) (event, error) {
	var e event
	valid := json.Valid(data)
	if !valid {
		return e, errInvalid
	}
	object := fields(data, func(name, value []byte) {
		switch string(name) {
		case "token":
			if isText(value) {
				e.token = unquote(value)
			}
		case "type":
			if isText(value) {
				e.kind = unquote(value)
			}
		case "id":
			e.id = value
		case "server":
			e.server = value
		}
	})
	switch {
	case !object:
		return e, errWrongType
	case e.token == "" || len(e.token) > maxToken || !sendable(e.token):
		return e, unusable("an event has no token that can be sent")
	}
	return e, nil
}

// change returns what an event reports, and whether it reports anything.
func (e event) change(has cloud.Capabilities, into *ignored) (change cloud.Change, ok bool, err error) {
	switch e.kind {
	case eventCreated, eventUpdated:
		server, err := newReader(into).listed(e.server, has)
		if err != nil {
			return change, false, unusable("the server of an event: " + err.Error())
		}
		change.Servers = []cloud.Server{server}
	case eventDeleted:
		id, err := identifier(e.id)
		if err != nil {
			return change, false, unusable("the server of an event: " + err.Error())
		}
		change.Gone = []string{id}
	default:
		return change, false, nil
	}
	return change, true, nil
}
