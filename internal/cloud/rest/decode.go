package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxID bounds a server's id, in characters.
const maxID = 128

// decode reads the answer's body as JSON into v. Bytes are bounded when they
// are read, depth by encoding/json (10,000). What follows the value is an error.
func decode(call *call, got *answer, v any) *cloud.Error {
	if !got.json() {
		return unreadable(call, "the answer is not JSON but "+kindOfBody(got))
	}
	err := json.Unmarshal(got.body, v)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		// Value may quote the answer, so the text names only the field.
		if wrong.Field == "" {
			return unreadable(call, "a value of the wrong type in the answer")
		}
		return unreadable(call, fmt.Sprintf("field %s of the answer has the wrong type", quote(wrong.Field)))
	}
	return unreadable(call, "the answer is not valid JSON")
}

// unreadable is the error for a successful answer that cannot be used: a call
// that changes something may have done so.
func unreadable(call *call, detail string) *cloud.Error {
	return &cloud.Error{Kind: cloud.Unreadable, Op: call.op, Detail: detail, Uncertain: call.changes()}
}

func decodeServer(call *call, got *answer) (cloud.Server, *cloud.Error) {
	var w wireServer
	if err := decode(call, got, &w); err != nil {
		return cloud.Server{}, err
	}
	if err := w.check(); err != nil {
		return cloud.Server{}, unreadable(call, err.Error())
	}
	return w.server(), nil
}

// page is a ServerPage and whether it came in the extended profile's shape.
type page struct {
	cloud.ServerPage
	extended bool
}

// decodePage takes both shapes: a bare array, and an object with a marker. One
// bad server spoils the page, since a server left out would look gone.
func decodePage(call *call, got *answer) (page, *cloud.Error) {
	var listing wireListing
	var into any = &listing
	extended := true
	if body := bytes.TrimLeft(got.body, " \t\r\n"); len(body) > 0 && body[0] == '[' {
		into, extended = &listing.Servers, false
	}
	if err := decode(call, got, into); err != nil {
		return page{}, err
	}
	if listing.Servers == nil {
		return page{}, unreadable(call, "the answer holds no list of servers")
	}
	result := page{extended: extended}
	result.Servers = make([]cloud.Server, 0, len(listing.Servers))
	if listing.Next != nil {
		result.Next = *listing.Next
	}
	for i := range listing.Servers {
		if err := listing.Servers[i].check(); err != nil {
			return page{}, unreadable(call, fmt.Sprintf("server %d of the page: %v", i+1, err))
		}
		result.Servers = append(result.Servers, listing.Servers[i].server())
	}
	return result, nil
}

func decodeStatus(call *call, got *answer) (cloud.Status, *cloud.Error) {
	var w wireStatus
	if err := decode(call, got, &w); err != nil {
		return cloud.Status{}, err
	}
	if w.CPUUtilization.value == nil {
		return cloud.Status{}, unreadable(call, "the answer holds no cpuUtilization within 0 to 100")
	}
	return cloud.Status{CPUUtilization: *w.CPUUtilization.value}, nil
}

func decodeSession(call *call, got *answer) (wireSession, *cloud.Error) {
	var w wireSession
	if err := decode(call, got, &w); err != nil {
		return w, err
	}
	if w.Token == "" || !sendable(w.Token) {
		return w, unreadable(call, "the answer holds no token that can be sent")
	}
	return w, nil
}

// check returns what makes the server unusable.
func (w *wireServer) check() error {
	if err := checkID(w.ID); err != nil {
		return err
	}
	if w.Name == "" {
		return errors.New("it has no name")
	}
	return nil
}

func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("it has no id")
	case id == "." || id == "..":
		return errors.New("its id is a path")
	case utf8.RuneCountInString(id) > maxID:
		return fmt.Errorf("its id is longer than %d characters", maxID)
	}
	// Invalid UTF-8 decodes to U+FFFD, which would make different ids equal.
	if strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return errors.New("its id holds characters that cannot be printed")
	}
	return nil
}

func (w *wireServer) server() cloud.Server {
	s := cloud.Server{
		ID: w.ID, Name: w.Name, State: cloud.StateActive,
		CPU: int(w.CPU), MemoryGiB: int(w.Memory),
		Template: w.Template, Folder: w.Folder, NetworkID: w.NetworkID, Host: w.Host,
		CPUUtilization: w.CPUUtilization.value, CPUUsageMHz: int(w.CPUUsageMHz), MemoryUsageMB: int(w.MemoryUsageMB),
		CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time,
	}
	if w.State != nil && *w.State != "" {
		s.State = stateOf(*w.State)
	}
	for key, value := range w.Labels {
		if value == nil {
			continue
		}
		if s.Labels == nil {
			s.Labels = make(map[string]string, len(w.Labels))
		}
		s.Labels[key] = *value
	}
	return s
}

func stateOf(text string) cloud.State {
	switch s := cloud.State(text); s {
	case cloud.StateBuilding, cloud.StateActive, cloud.StateStopped, cloud.StateDeleting, cloud.StateError:
		return s
	default:
		return cloud.StateUnknown
	}
}
