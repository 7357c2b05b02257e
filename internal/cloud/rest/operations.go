package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// operationClient reads operations.
type operationClient struct {
	calls        *calls
	capabilities *capabilityClient
	ignored      *ignored
	scrubber     *scrubber
}

// GetOperation returns the operation of this id.
func (o *operationClient) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	op := "get operation " + quote(id)
	if id == "" {
		return cloud.Operation{}, refuse(op, cloud.Rejected, "no id was given")
	}
	has, err := o.capabilities.neededBy(ctx, op)
	if err == nil {
		err = require(op, has, cloud.Operations)
	}
	if err != nil {
		return cloud.Operation{}, err
	}
	call := &call{
		about: aboutOperation, method: http.MethodGet, route: "/operations/{id}", path: join("operations", id),
		limit: maxBody, op: op,
	}
	got, err := o.calls.do(ctx, call)
	if err != nil {
		return cloud.Operation{}, err
	}
	operation, err := o.decodeOperation(call, got)
	return operation, asError(err)
}

// resultOf reads the answer to a change of a server: the server, an operation, or both.
func resultOf(call *call, got *answer, has cloud.Capabilities, into *ignored) (cloud.Result, *cloud.Error) {
	var result cloud.Result
	if got.status == http.StatusAccepted && has.Has(cloud.Operations) {
		id, err := operationOf(got)
		if err != nil {
			return cloud.Result{}, unreadable(call, err.Error())
		}
		if result.Operation = id; id != "" && !got.hasServer() {
			return result, nil
		}
	}
	server, err := decodeServer(call, got, into)
	if err != nil {
		return cloud.Result{}, err
	}
	result.Server = server
	return result, nil
}

// operationOf returns the id of the operation that an answer refers to, empty if it
// refers to none: that of the header Location, else of the field operation.
func operationOf(got *answer) (string, error) {
	id := ""
	if location, err := url.Parse(got.header.Get("Location")); err == nil {
		segments := strings.Split(location.EscapedPath(), "/")
		if n := len(segments); n >= 2 && segments[n-2] == "operations" {
			if id, err = url.PathUnescape(segments[n-1]); err != nil {
				return "", errors.New("the id of the operation in the header Location cannot be read")
			}
		}
	}
	if id == "" {
		var value []byte
		fields(got.document(), func(name, v []byte) {
			if string(name) == "operation" {
				value = v
			}
		})
		if isNull(value) {
			return "", nil
		}
		var err error
		if id, err = identifier(value); err != nil {
			return "", errors.New("the field operation is no id")
		}
		return id, nil
	}
	if checkID(id) != nil {
		return "", errors.New("the id of the operation in the header Location cannot be used")
	}
	return id, nil
}

// hasServer reports whether the body is a server, rather than empty or the
// reference to an operation alone.
func (a *answer) hasServer() bool {
	found := false
	fields(a.document(), func(name, value []byte) {
		found = found || string(name) == "id" && !isNull(value)
	})
	return found
}

func (o *operationClient) decodeOperation(call *call, got *answer) (cloud.Operation, *cloud.Error) {
	var operation cloud.Operation
	var done, server, failure []byte
	err := object(call, got, func(name, value []byte) {
		switch string(name) {
		case "done":
			done = value
		case "progress":
			if percent := newReader(o.ignored).percent("progress", value); percent != nil {
				operation.Progress = *percent
			}
		case "serverId":
			server = value
		case "error":
			failure = value
		}
	})
	switch {
	case err != nil:
		return cloud.Operation{}, err
	case string(done) != "true" && string(done) != "false":
		return cloud.Operation{}, unreadable(call, "the operation has no field done that is true or false")
	}
	operation.Done = string(done) == "true"
	if !isNull(server) {
		id, err := identifier(server)
		if err != nil {
			return cloud.Operation{}, unreadable(call, "of serverId: "+err.Error())
		}
		operation.ServerID = id
	}
	if operation.Done && !isNull(failure) {
		operation.Err = o.fault(call, got, failure)
	}
	return operation, nil
}

// fault returns why an operation failed. Its code decides as that of a refusal does.
func (o *operationClient) fault(call *call, got *answer, body []byte) *cloud.Error {
	problem := problemIn(body)
	if o.scrubber.redactor.Redact(problem.Code, got.token) != problem.Code {
		problem.Code = ""
	}
	e := &cloud.Error{Kind: cloud.Failed, Op: call.op, Code: problem.Code, Detail: o.scrubber.reasonOf(problem, got.header, got.token, call.id)}
	switch kind := kindOfCode[problem.Code]; kind {
	case "", cloud.Unauthorized, cloud.Throttled, cloud.Unavailable:
		// What an operation met says nothing about the calls of this client.
	default:
		e.Kind = kind
	}
	if e.Detail == "" {
		e.Detail = "the cloud gives no reason"
	}
	return e
}
