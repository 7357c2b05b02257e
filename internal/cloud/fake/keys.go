package fake

import (
	"reflect"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// keys remembers creates by their idempotency key: Req is the request, Res what
// it created.
type keys[Req, Res any] map[string]keyed[Req, Res]

type keyed[Req, Res any] struct {
	req Req
	id  string
	// at is the place in the order of what was created.
	at int
	// res is the answer to the create.
	res Res
}

// find returns what was created with the key. Reused means that the key came with
// another request.
func (k keys[Req, Res]) find(key string, req Req) (made keyed[Req, Res], found, reused bool) {
	made, found = k[key]
	if !found {
		return made, false, false
	}
	return made, true, !reflect.DeepEqual(made.req, req)
}

// put remembers a create. One without a key is not remembered.
func (k keys[Req, Res]) put(key string, req Req, id string, at int, res Res) {
	if key != "" {
		k[key] = keyed[Req, Res]{req: req, id: id, at: at, res: res}
	}
}

// recordFirst records a create that came as the first with its key. The caller holds mu.
func (c *serverClient) recordFirst(req cloud.CreateServer) {
	c.firsts = append(c.firsts, req.Name)
	_, made := c.keys[req.IdempotencyKey]
	open := slices.ContainsFunc(c.operations.store.ordered(), func(one stored[operation]) bool {
		return one.item.key == req.IdempotencyKey && !one.item.Done
	})
	if made || open {
		c.repeated = append(c.repeated, req.Name)
	}
}
