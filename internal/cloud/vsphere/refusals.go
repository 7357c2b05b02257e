package vsphere

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxText bounds what is quoted of a text, in characters.
const maxText = 128

// refuse returns the error of a call that was not sent, or whose answer refuses it.
func refuse(op string, kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// quote bounds what people typed.
func quote(text string) string {
	return fmt.Sprintf("%q", transport.Truncate(transport.Printable(text), maxText))
}

func quoteAll(names []string) []string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, quote(name))
	}
	return quoted
}

// existing says what there is instead of what was named.
func existing(list func() ([]string, error)) string {
	const most = 10
	names, err := list()
	if err != nil || len(names) == 0 {
		return "the operator's account sees none"
	}
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("there are %s and %d more", strings.Join(quoteAll(names[:most]), ", "), more)
	}
	return "there is " + strings.Join(quoteAll(names), ", ")
}

// exchangeError is a request that failed without a fault that says what happened.
type exchangeError struct {
	error
	// sent is whether the request may have reached the vCenter.
	sent bool
}

func (e *exchangeError) Unwrap() error { return e.error }

// faultOf returns the fault that the vCenter answered with, nil if it did not.
func faultOf(err error) types.BaseMethodFault {
	if err == nil {
		return nil
	}
	if fault, ok := errors.AsType[interface {
		error
		Fault() types.BaseMethodFault
	}](err); ok {
		return fault.Fault()
	}
	return nil
}

// codeOf returns the name of a fault.
func codeOf(fault types.BaseMethodFault) string {
	if fault == nil || reflect.TypeOf(fault).Kind() != reflect.Pointer {
		return ""
	}
	return reflect.TypeOf(fault).Elem().Name()
}

func notAuthenticated(err error) bool {
	_, ended := faultOf(err).(*types.NotAuthenticated)
	_, unclear := errors.AsType[*exchangeError](err)
	return ended && !unclear
}

func isGone(err error) bool {
	_, gone := faultOf(err).(*types.ManagedObjectNotFound)
	return gone
}

// changed returns e as the error of a request that changes something.
func changed(e *cloud.Error, err error) *cloud.Error {
	exchange, ok := errors.AsType[*exchangeError](err)
	e.Uncertain = ok && exchange.sent
	return e
}
