package tenancy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Scope is the part of all Clouds that one manager reconciles, together with the
// objects that use them. The zero value is all Clouds. A Cloud that does not exist
// is in the scopes that select an object without labels, so that of several
// managers one reports it.
type Scope struct{ selector labels.Selector }

// ParseScope returns the Scope of a label selector on Clouds, as kubectl takes
// it. An empty one selects all Clouds.
func ParseScope(text string) (Scope, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return Scope{}, fmt.Errorf("%q is no label selector: %w", text, err)
	}
	if selector.Empty() {
		return Scope{}, nil
	}
	return Scope{selector: selector}, nil
}

// All reports whether every Cloud is in the scope.
func (s Scope) All() bool { return s.selector == nil }

// Selects reports whether a Cloud with these labels is in the scope.
func (s Scope) Selects(set labels.Set) bool { return s.All() || s.selector.Matches(set) }

// LeaseName returns the name of the lease of managers with this scope: base for
// all Clouds, else one that equal selectors have in common, however they are spelled.
func (s Scope) LeaseName(base string) string {
	if s.All() {
		return base
	}
	requirements, _ := s.selector.Requirements()
	parts := make([]string, 0, len(requirements))
	for _, r := range requirements {
		parts = append(parts, canonical(r))
	}
	slices.Sort(parts)
	digest := sha256.Sum256([]byte(strings.Join(slices.Compact(parts), ",")))
	return fmt.Sprintf("%s-%x", base, digest[:5])
}

// canonical returns one spelling for all of the same requirement.
func canonical(r labels.Requirement) string {
	operator := r.Operator()
	switch operator {
	case selection.Equals, selection.DoubleEquals:
		operator = selection.In
	case selection.NotEquals:
		operator = selection.NotIn
	default:
	}
	return fmt.Sprintf("%s %s %q", r.Key(), operator, slices.Sorted(slices.Values(r.ValuesUnsorted())))
}

// Ownership returns a function that reports whether the Cloud with this name is
// in the scope, as far as the cache shows at the time of each call. A Cloud that
// the cache lacks is looked up in the API server once, since it may be another
// manager's: until the cache has it, it is in no scope.
func (s Scope) Ownership(ctx context.Context, cached, live client.Reader, name string) (func() bool, error) {
	ctx = context.WithoutCancel(ctx) // an effect that has begun goes on when the manager stops
	missing, err := s.missing(ctx, cached, name)
	if err != nil {
		return nil, err
	}
	if missing && s.Selects(nil) {
		var c pcapi.Cloud
		if err := live.Get(ctx, client.ObjectKey{Name: name}, &c); !apierrors.IsNotFound(err) {
			return never, wrapRead(name, err)
		}
	}
	return func() bool {
		owned, err := s.holds(ctx, cached, name)
		return owned && err == nil
	}, nil
}

func never() bool { return false }

// holds reports whether the Cloud with this name is in the scope, as far as the
// cache shows.
func (s Scope) holds(ctx context.Context, cached client.Reader, name string) (bool, error) {
	c, err := read(ctx, cached, name)
	if errors.Is(err, errMissing) {
		return s.Selects(nil), nil
	}
	return err == nil && s.Selects(c.Labels), err
}

func (s Scope) missing(ctx context.Context, cached client.Reader, name string) (bool, error) {
	_, err := read(ctx, cached, name)
	if errors.Is(err, errMissing) {
		return true, nil
	}
	return false, err
}

// errMissing is the error of read for a Cloud that does not exist.
var errMissing = errors.New("the Cloud does not exist")

// read returns a Cloud as the cache has it, without a wait for writes to it, or
// errMissing.
func read(ctx context.Context, cached client.Reader, name string) (*pcapi.Cloud, error) {
	var c pcapi.Cloud
	err := cached.Get(ctx, client.ObjectKey{Name: name}, &c, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) {
		return nil, errMissing
	}
	return &c, wrapRead(name, err)
}

func wrapRead(name string, err error) error {
	if err != nil {
		return fmt.Errorf("read Cloud %q: %w", name, err)
	}
	return nil
}

// Filter returns a predicate for the objects of one kind. Of the events that
// changed accepts, it accepts those of objects whose Cloud is in the scope or
// cannot be found out now, and any update by which an object enters or leaves the
// scope. cloudOf returns the name of the Cloud that an object uses.
func (s Scope) Filter(ctx context.Context, cached client.Reader, cloudOf func(context.Context, client.Object) (string, error), changed predicate.Predicate) predicate.Predicate {
	return s.filter(changed, func(o client.Object) bool {
		name, err := cloudOf(ctx, o)
		if err != nil {
			return true
		}
		held, err := s.holds(ctx, cached, name)
		return held || err != nil
	})
}

// FilterClouds is Filter for Clouds.
func (s Scope) FilterClouds(changed predicate.Predicate) predicate.Predicate {
	return s.filter(changed, func(o client.Object) bool { return s.Selects(o.GetLabels()) })
}

func (s Scope) filter(changed predicate.Predicate, held func(client.Object) bool) predicate.Predicate {
	if s.All() {
		return changed
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return changed.Create(e) && held(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return changed.Delete(e) && held(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return changed.Generic(e) && held(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := held(e.ObjectOld), held(e.ObjectNew)
			return was != is || is && changed.Update(e)
		},
	}
}
