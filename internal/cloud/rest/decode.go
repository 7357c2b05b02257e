package rest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxMarker bounds the marker of a page, in bytes: it becomes part of a URL.
const maxMarker = 4096

// unreadable is the error for a successful answer that cannot be used: a call
// that changes something may have done so.
func unreadable(call *call, detail string) *cloud.Error {
	return &cloud.Error{Kind: cloud.Unreadable, Op: call.op, Detail: detail, Uncertain: call.changes()}
}

// ofAnotherID is the error for an answer about the resource of another id than the one that was asked for.
func (s *scrubber) ofAnotherID(call *call, got *answer, noun, asked, id string) *cloud.Error {
	return unreadable(call, s.redactor.Redact(cloud.OfAnotherID(noun, asked, id), got.token))
}

// document returns the body of the answer, the syntax of which is valid. Bytes are
// bounded when they are read, depth by encoding/json (10,000).
func document(call *call, got *answer) ([]byte, *cloud.Error) {
	if !got.json() {
		return nil, unreadable(call, got.notJSON(got.body[:min(len(got.body), maxStart)], kindOfBody(got)).Error())
	}
	body := bytes.TrimPrefix(got.body, byteOrderMark)
	if err := got.checkJSON(body); err != nil {
		return nil, unreadable(call, err.Error())
	}
	return body, nil
}

// object is document for answers that are an object. It calls f with each field.
func object(call *call, got *answer, f func(name, value []byte)) *cloud.Error {
	body, err := document(call, got)
	if err == nil && !fields(body, f) {
		err = unreadable(call, errWrongType.Error())
	}
	return err
}

// decodeOne reads an answer that is one object. read is a method of reader.
func decodeOne[T any](call *call, got *answer, into *ignored, read func(*reader, []byte) (T, error)) (T, *cloud.Error) {
	var none T
	body, failed := document(call, got)
	if failed != nil {
		return none, failed
	}
	result, err := read(newReader(into), body)
	if err != nil {
		return none, unreadable(call, err.Error())
	}
	return result, nil
}

func decodeServer(call *call, got *answer, into *ignored) (cloud.Server, *cloud.Error) {
	return decodeOne(call, got, into, (*reader).server)
}

// page is a ServerPage and whether it came in the extended profile's shape.
type page struct {
	cloud.ServerPage
	extended bool
}

// decodePage reads a page and holds its servers.
func decodePage(call *call, got *answer, in *stream, into *ignored, has cloud.Capabilities) (page, *cloud.Error) {
	to := &collector{}
	result, err := streamPage(call, got, in, into, to, has)
	result.Servers = to.servers
	if err != nil {
		return page{}, err
	}
	return result, nil
}

// streamPage passes the servers of a page on. It takes both shapes: a bare array,
// and an object with a marker. One bad server spoils the page, since a server left
// out would look gone. has is what the cloud can do.
func streamPage(call *call, got *answer, in *stream, into *ignored, to cloud.ServerSink, has cloud.Capabilities) (result page, err *cloud.Error) {
	r := newReader(into)
	r.last = map[string]string{}
	to.Begin()
	result.extended, err = (&list{
		noun: "servers", field: "servers", array: true, object: true,
		element: func(n int, value []byte) error {
			server, err := r.listed(value, has)
			if err != nil {
				return unusable(fmt.Sprintf("server %d of the page: %s", n, got.elementError(err, server.ID)))
			}
			return to.Take(server)
		},
		marker: func(value []byte) (err error) {
			result.Next, err = marker(value)
			return err
		},
	}).read(call, got, in)
	return result, err
}

// collector holds the servers of a page.
type collector struct {
	servers []cloud.Server
	kept    kept
}

func (c *collector) Begin() { *c = collector{servers: []cloud.Server{}} }

func (c *collector) Take(s cloud.Server) error {
	s.Labels = maps.Clone(s.Labels)
	c.servers = append(c.servers, s)
	return c.kept.add(sizeOf(&s), maxMemory)
}

// noServers is a sink for a page whose servers do not matter.
type noServers struct{}

func (noServers) Begin()                  {}
func (noServers) Take(cloud.Server) error { return nil }

// marker reads the marker of the next page. It is not optional: without it the rest
// of the listing would look gone.
func marker(value []byte) (string, error) {
	switch {
	case isNull(value):
		return "", nil
	case isInteger(value) && len(value) <= maxNumber:
		return string(value), nil
	case !isText(value):
		return "", wrongType("next")
	}
	text := unquote(value) // longer than value where that is no valid UTF-8
	if max(len(value), len(text)) > maxMarker {
		return "", unusable(fmt.Sprintf("the marker of the next page is longer than %d bytes", maxMarker))
	}
	return text, nil
}

// sizeOf estimates the memory that a server takes, in bytes.
func sizeOf(s *cloud.Server) int {
	const server, labels, label = 256, 320, 64
	size := server + len(s.ID) + len(s.Name) + len(s.Fault) + len(s.Image.Name) + len(s.Folder) + len(s.NetworkID) + len(s.Host) + len(s.Zone) + len(s.Interfaces) + len(s.Disks) + len(s.RootDisk.Type) + len(s.SecurityGroups) + len(s.AllowedAddresses) + len(s.PublicAddress)
	if len(s.Labels) > 0 {
		size += labels
	}
	for key, value := range s.Labels {
		size += label + len(key) + len(value)
	}
	return size
}

func decodeStatus(call *call, got *answer, into *ignored) (cloud.Status, *cloud.Error) {
	var use *int
	err := object(call, got, func(name, value []byte) {
		if string(name) == "cpuUtilization" {
			use = newReader(into).percent("cpuUtilization", value)
		}
	})
	switch {
	case err != nil:
		return cloud.Status{}, err
	case use == nil:
		return cloud.Status{}, unreadable(call, "the answer holds no cpuUtilization within 0 to 100")
	}
	return cloud.Status{CPUUtilization: use}, nil
}

// opened is a session that the cloud opened. Its end is zero where the cloud gave none.
type opened struct {
	token   string
	expires time.Time
}

func decodeSession(call *call, got *answer, into *ignored) (opened, *cloud.Error) {
	var session opened
	err := object(call, got, func(name, value []byte) {
		switch string(name) {
		case "token":
			session.token = ""
			if isText(value) {
				session.token = unquote(value)
			}
		case "expiresAt":
			session.expires = newReader(into).time("expiresAt", value)
		}
	})
	if err == nil && (session.token == "" || !sendable(session.token)) {
		err = unreadable(call, "the answer holds no token that can be sent")
	}
	if err != nil {
		return opened{}, err
	}
	return session, nil
}

// named reads the id and the name of an object, without which it cannot be used, and
// calls optional with each other field.
func (r *reader) named(data []byte, optional func(field, value []byte)) (id, name string, err error) {
	var idValue, nameValue []byte
	object := fields(data, func(field, value []byte) {
		switch string(field) {
		case "id":
			idValue = value
		case "name":
			nameValue = value
		default:
			optional(field, value)
		}
	})
	if !object && !isNull(trim(data)) {
		return "", "", errors.New("it is not an object")
	}
	if id, err = identifier(idValue); err != nil {
		return id, "", err
	}
	name, err = r.name(nameValue)
	return id, name, err
}

// server reads a server. Only id and name are indispensable.
func (r *reader) server(data []byte) (s cloud.Server, err error) {
	s.State = cloud.StateActive
	s.ID, s.Name, err = r.named(data, func(field, value []byte) { r.optional(&s, field, value) })
	return s, err
}

// listed reads a server of a listing or an event. A server without a name is read with an empty one if it is
// somebody else's: the cloud has labels, shows all of the server, and the server has none of the operator's and
// its create has ended. Any other may be a server of this operator that is shown without its name, and cannot be
// used.
func (r *reader) listed(data []byte, has cloud.Capabilities) (cloud.Server, error) {
	r.labelsIgnored = false
	s, err := r.server(data)
	if _, nameless := errors.AsType[unnamed](err); !nameless || !has.Has(cloud.Labels) || r.labelsIgnored || !complete(data) {
		return s, err
	}
	for key := range s.Labels {
		if strings.Contains(strings.ToLower(key), ownLabel) {
			return s, err
		}
	}
	switch s.State {
	case cloud.StateActive, cloud.StateStopped, cloud.StateSuspended:
		r.ignored.add("name", "empty, of a server without labels of the operator")
		return s, nil
	default: // its name and labels may be still to come
		return s, err
	}
}

// complete reports whether a server has the fields name, state and labels, the name being null or a string. One that
// lacks any of them may be shown before the cloud has read all of it.
func complete(data []byte) bool {
	var name, state, labels bool
	fields(data, func(field, value []byte) {
		switch string(field) {
		case "name":
			name = len(value) > 0 && (isNull(value) || isText(value))
		case "state":
			state = isText(value)
		case "labels":
			labels = len(value) > 0 && value[0] == '{'
		}
	})
	return name && state && labels
}

// elementError returns why an element of a list cannot be used, with its id if it has no name.
func (a *answer) elementError(err error, id string) string {
	if _, nameless := errors.AsType[unnamed](err); !nameless {
		return err.Error()
	}
	text := err.Error()
	if quoted := a.quoted(id); quoted != "" {
		text += ", and its id is " + quoted
	}
	return text + ": give it a name in the cloud, since it may be that of an object of this operator"
}

func (r *reader) optional(s *cloud.Server, field, value []byte) {
	switch string(field) {
	case "labels":
		s.Labels = r.labels(value)
	case "state":
		s.State, s.Fault = r.state(value)
	case "cpu":
		s.CPU = r.count("cpu", value)
	case "memory":
		s.MemoryMiB = r.memory("memory", value)
	case "template":
		s.Image.Name = r.text("template", value)
	case "folder":
		s.Folder = r.text("folder", value)
	case "networkId":
		s.NetworkID = r.networkID(value)
	case "host":
		s.Host = r.text("host", value)
	case "zone":
		s.Zone = r.text("zone", value)
	case "interfaces":
		s.Interfaces = r.interfaces(value)
	case "disks":
		s.Disks = r.disks(value)
	case "rootDisk":
		s.RootDisk = r.rootDisk(value)
	case "securityGroups":
		s.SecurityGroups = r.securityGroups(value)
	case "allowedAddresses":
		s.AllowedAddresses = r.allowedAddresses(value)
	case "publicAddress":
		s.PublicAddress = r.publicAddress(value)
	case "guestHeartbeat":
		s.Heartbeat = r.heartbeat(value)
	default:
		r.measured(s, field, value)
	}
}

// measured reads what changes while a server runs, and its times.
func (r *reader) measured(s *cloud.Server, field, value []byte) {
	switch string(field) {
	case "cpuUtilization":
		s.CPUUtilization = r.percent("cpuUtilization", value)
	case "cpuUsageMHz":
		s.CPUUsageMHz = r.count("cpuUsageMHz", value)
	case "memoryUsageMB":
		s.MemoryUsageMB = r.count("memoryUsageMB", value)
	case "createdAt":
		s.CreatedAt = r.time("createdAt", value)
	case "updatedAt":
		s.UpdatedAt = r.time("updatedAt", value)
	}
}

// heartbeats are the values of guestHeartbeat.
var heartbeats = map[string]cloud.Heartbeat{"OK": cloud.HeartbeatOK, "LOST": cloud.HeartbeatLost, "NONE": cloud.HeartbeatNone}

// heartbeat reads a heartbeat, unknown where it is absent or has another value.
func (r *reader) heartbeat(value []byte) cloud.Heartbeat {
	if isNull(value) {
		return cloud.HeartbeatUnknown
	}
	if isText(value) {
		if heartbeat, known := heartbeats[string(unquoted(value))]; known {
			return heartbeat
		}
	}
	r.ignored.add("guestHeartbeat", "not one of OK, LOST and NONE")
	return cloud.HeartbeatUnknown
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
