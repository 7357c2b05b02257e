package vsphere

import (
	"cmp"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
)

// maxLimit bounds the servers of a page. It is how many a page has where the caller does
// not say: about three megabytes, and one or two more for each interface that the guests report.
const maxLimit = 1000

// fewer is how many times fewer objects are asked for after an answer that was too large.
const fewer = 4

// volume bounds the objects of an answer that has properties. How large they are is not for
// the vCenter alone to decide: a guest may report thousands of addresses, and a few such VMs
// in a page must not make the VMs of all others unreadable.
type volume struct {
	// maxBody bounds an answer in bytes; transport.DefaultMaxBody if zero.
	maxBody int64
	// most is how many objects an answer may have; zero while no answer was too large.
	most atomic.Int32
}

// ask bounds the objects that a request asks for. It returns the bound.
func (v *volume) ask(req soap.HasFault) int32 {
	most := v.most.Load()
	if most == 0 {
		return 0
	}
	atMost := func(n int32) int32 { return min(cmp.Or(n, most), most) }
	switch body := req.(type) {
	case *methods.RetrievePropertiesExBody:
		body.Req.Options.MaxObjects = atMost(body.Req.Options.MaxObjects)
	case *methods.WaitForUpdatesExBody:
		if options := body.Req.Options; options != nil {
			options.MaxObjectUpdates = atMost(options.MaxObjectUpdates)
		}
	}
	return most
}

// learn lowers the bound with which a request was sent if its answer was too large. The
// request fails, and those that come after it ask for fewer objects.
func (v *volume) learn(req soap.HasFault, asked int32, err error) {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge {
		return
	}
	switch req.(type) {
	case *methods.RetrievePropertiesExBody, *methods.ContinueRetrievePropertiesExBody, *methods.WaitForUpdatesExBody:
		v.most.CompareAndSwap(asked, max(1, cmp.Or(asked, maxLimit)/fewer))
	}
}
