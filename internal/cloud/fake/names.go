package fake

import (
	"cmp"
	"context"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// CheckName reports whether a server may be created with this name.
func (c *serverClient) CheckName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if err := checkName(op, name.Name); err != nil {
		return err
	}
	_, err := do(ctx, c.calls, call{verb: CheckName, object: name.Name, op: op}, func() (struct{}, error) {
		return struct{}{}, c.nameOfServer(op, name)
	})
	return err
}

// nameOfServer reports whether a new server may have the name. The caller holds mu.
func (c *serverClient) nameOfServer(op string, name cloud.Name) error {
	if c.settings.normalize {
		name.Name = strings.ToLower(name.Name)
	}
	key := func(n cloud.Name) string {
		if c.settings.caps.Has(cloud.FolderNames) {
			return n.Folder + "/" + n.Name
		}
		return n.Name
	}
	for _, open := range c.operations.store.all() {
		if c.settings.caps.Has(cloud.UniqueNames) && !open.Done && open.name.Name != "" && key(open.name) == key(name) {
			return failure(op, cloud.Taken, "the name is taken")
		}
	}
	return nameOf(c.settings, op, name.Name, key(name), c.store, func(s cloud.Server) string {
		return key(cloud.Name{Name: cmp.Or(c.altered[s.ID], s.Name), Folder: s.Folder})
	})
}

// nameOf reports whether a new item of a store may have the name, which is unique in
// the form that nameIn returns. The caller holds mu.
func nameOf[R any](s *settings, op, name, unique string, in *store[R], nameIn func(R) string) error {
	if s.prohibited[name] {
		return &cloud.Error{Kind: cloud.Prohibited, Code: "nameProhibited", Op: op, Detail: "the name is prohibited"}
	}
	if !s.caps.Has(cloud.UniqueNames) {
		return nil
	}
	for _, item := range in.all() {
		if nameIn(item) == unique {
			return failure(op, cloud.Taken, "the name is taken")
		}
	}
	return nil
}
