package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/tenancy"
)

// report is the answer to why an object is not ready.
type report struct {
	// Chain is the object, what it waits for, and so on; a Cloud is the last.
	Chain []entry `json:"chain"`
	// Notes are what could not be found out, and why.
	Notes []string `json:"notes,omitempty"`
	// Claim is of the last entry that is no Cloud, and so are Steps.
	Claim *claim      `json:"claim,omitempty"`
	Cloud *wire.Cloud `json:"cloud,omitempty"`
	Steps []wire.Step `json:"steps,omitempty"`
}

// asked is what the operator is asked for.
type asked interface {
	Cloud(ctx context.Context, name string) (wire.Cloud, error)
	Steps(ctx context.Context, cloud, kind, namespace, name string) ([]wire.Step, error)
}

// chain follows an object to the cause. What it waits for is read after it.
type chain struct {
	reader   client.Reader
	operator asked
	seen     map[key]bool
	report   report
}

// follow returns the report of an object. It fails if the object itself cannot be read.
func (c *chain) follow(ctx context.Context, root key) (*report, error) {
	o, err := c.read(ctx, root)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s does not exist", describe(root))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", describe(root), err)
	}
	cause, causeObject := root, o
	for next := root; ; {
		c.seen[next] = true
		l := entryOf(next, o)
		c.report.Chain = append(c.report.Chain, l)
		if next.kind != cloudKind {
			cause, causeObject = next, o
		}
		if l.done() {
			break
		}
		found, follows, ok := c.next(ctx, next, o, l.Reason)
		if !ok {
			break
		}
		next, o = found, follows
	}
	if c.report.Chain[0].done() {
		return &c.report, nil
	}
	c.addDetails(ctx, cause, causeObject)
	return &c.report, nil
}

// next returns what an object waits for, if that is an object that can be followed. One that
// does not exist, or cannot be read, is the last.
func (c *chain) next(ctx context.Context, at key, o client.Object, reason string) (key, client.Object, bool) {
	k := named(at.kind)
	if k.members != nil && k.members(reason) {
		return c.member(ctx, o.(*pcapi.VmGroup))
	}
	if k.waitsFor == nil {
		return key{}, nil, false
	}
	for _, wait := range k.waitsFor(o, reason) {
		if c.seen[wait] {
			continue
		}
		of, err := c.read(ctx, wait)
		if err != nil {
			c.end(wait, err)
			return key{}, nil, false
		}
		if l := entryOf(wait, of); !l.done() {
			return wait, of, true
		}
	}
	return key{}, nil, false
}

// end adds the entry of an object that was not read.
func (c *chain) end(at key, err error) {
	switch {
	case apierrors.IsNotFound(err):
		c.report.Chain = append(c.report.Chain, newEntry(at, stateMissing))
	case apierrors.IsForbidden(err):
		l := newEntry(at, stateUnreadable)
		l.Message = missingRight("get", at)
		c.report.Chain = append(c.report.Chain, l)
	default:
		c.note("%s cannot be read: %v", describe(at), err)
	}
}

// member returns the first member of a group that is not ready: a stalled one before the
// others, then by name.
func (c *chain) member(ctx context.Context, g *pcapi.VmGroup) (key, client.Object, bool) {
	var first *pcapi.VM
	before := func(a, b *pcapi.VM) bool {
		la, lb := entryOf(key{}, a), entryOf(key{}, b)
		if la.Stalled != lb.Stalled {
			return la.Stalled
		}
		return a.Name < b.Name
	}
	options := []client.ListOption{client.InNamespace(g.Namespace)}
	if selector, err := labels.Parse(g.Status.Selector); err == nil && !selector.Empty() {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	err := plugin.Each(ctx, c.reader, &pcapi.VMList{}, func(vm *pcapi.VM) error {
		l := entryOf(key{}, vm)
		if !l.done() && metav1.IsControlledBy(vm, g) && (first == nil || before(vm, first)) {
			first = vm.DeepCopy()
		}
		return nil
	}, options...)
	switch {
	case apierrors.IsForbidden(err):
		c.note("the members of the group cannot be read: %s", missingRight("list", key{"VM", g.Namespace, ""}))
	case err != nil:
		c.note("the members of the group cannot be read: %v", err)
	case first != nil:
		return key{"VM", first.Namespace, first.Name}, first, true
	}
	return key{}, nil, false
}

func (c *chain) read(ctx context.Context, at key) (client.Object, error) {
	o := named(at.kind).empty()
	return o, c.reader.Get(ctx, client.ObjectKey{Namespace: at.namespace, Name: at.name}, o)
}

func (c *chain) note(format string, args ...any) {
	c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
}

// cloudOf returns the Cloud that an object uses, empty if that is not known.
func (c *chain) cloudOf(ctx context.Context, at key, o client.Object) string {
	k := named(at.kind)
	switch {
	case at.kind == cloudKind:
		return at.name
	case k.cloud == nil:
		return c.cloudOfEarlier(ctx)
	}
	name, uses := k.cloud(o)
	if name != "" {
		return name
	}
	if !uses {
		return c.cloudOfEarlier(ctx)
	}
	name, err := tenancy.CloudFor(ctx, c.reader, at.namespace, nil)
	_, missing := errors.AsType[*tenancy.NamespacePendingError](err)
	switch {
	case apierrors.IsForbidden(err):
		c.note("which Cloud %s uses is not known: %s", describe(at), missingRight("get", key{"Namespace", "", at.namespace}))
		return ""
	case err != nil && !missing:
		c.note("which Cloud %s uses is not known: %v", describe(at), err)
		return ""
	}
	return name
}

// cloudOfEarlier returns the Cloud of an object before the last entry, for those that use
// none themselves. A VMSnapshot whose VM exists was followed to it.
func (c *chain) cloudOfEarlier(ctx context.Context) string {
	for _, l := range slices.Backward(c.report.Chain) {
		at := key{l.Kind, l.Namespace, l.Name}
		if l.Kind != "VM" || l.State == stateMissing || l.State == stateUnreadable {
			continue
		}
		if o, err := c.read(ctx, at); err == nil {
			return c.cloudOf(ctx, at, o)
		}
	}
	return ""
}

// describe returns an object in words.
func describe(k key) string {
	if k.namespace == "" {
		return k.kind + " " + k.name
	}
	return k.kind + " " + k.namespace + "/" + k.name
}

// missingRight names a right.
func missingRight(verb string, of key) string {
	resource := map[string]string{"Namespace": "namespaces"}[of.kind]
	if resource == "" {
		resource = named(of.kind).plural + "." + pcapi.GroupVersion.Group
	}
	return fmt.Sprintf("the right to %s %s%s is missing", verb, resource, cmp.Or(in(of.namespace), " in the cluster"))
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}
