package vsphere

import (
	"context"
	"sync"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// answerLifetime is how long an answer of a vCenter is used that somebody may change at any time: a folder, which can be
// moved; a site without one of its zones; whether VMs are hidden.
const answerLifetime = 10 * time.Second

// sites finds the site, and remembers it.
type sites struct {
	session *session
	place   Place
	// replaced is called when a part of a site does not exist any more.
	replaced func()
	// locating is held by the one call that looks for the site.
	locating chan struct{}
	mu       sync.Mutex
	site     *site
	// defectHold is how long a site is used of which a zone is missing.
	defectHold time.Duration
}

// locate returns the site, looking for it if it is not known.
func (s *sites) locate(ctx context.Context) (*site, error) {
	if at := s.known(); at != nil {
		return at, nil
	}
	select {
	case s.locating <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.locating }()
	if at := s.known(); at != nil {
		return at, nil
	}
	vim, err := s.session.connect(ctx)
	if err != nil {
		return nil, err
	}
	var at *site
	err = s.session.sure(ctx, func() (bool, error) {
		at, err = findSite(ctx, vim, s.place)
		return cloud.Is(err, cloud.Misconfigured), err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.site = at
	return at, nil
}

func (s *sites) known() *site {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.site.outdated(s.defectHold) {
		return nil
	}
	return s.site
}

// drop makes the next call look for the site again, unless another site than the
// given one is known meanwhile; nil is for any.
func (s *sites) drop(at *site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == nil || s.site == at {
		s.site = nil
	}
}

// misplaced returns err, unless a part of the site does not exist any more. Then it
// looks for the site again, and returns what is missing.
func (s *sites) misplaced(ctx context.Context, at *site, err error) error {
	fault, gone := faultOf(err).(*types.ManagedObjectNotFound)
	if !gone {
		return err
	}
	switch fault.Obj {
	case at.root, at.templates, at.datacenter, at.hosts:
	default:
		if !at.uses(fault.Obj) {
			return err
		}
	}
	s.drop(at)
	s.replaced()
	if _, missing := s.locate(ctx); missing != nil {
		return missing
	}
	return refuse("", cloud.Busy, "a part of the inventory that the Cloud uses was replaced")
}

// defect returns what is missing of a zone, nil if nothing is.
func (s *sites) defect() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.site == nil || s.site.defect == nil {
		return nil
	}
	defect := *s.site.defect
	defect.Op = "find the zones"
	return &defect
}

// findSite looks for the one site that a place describes.
func findSite(ctx context.Context, vim *vim25.Client, place Place) (*site, error) {
	s := &search{finder: find.NewFinder(vim), place: place, at: &site{vim: vim, found: time.Now()}}
	for _, step := range []func(context.Context) error{s.findDatacenter, s.findFolders, s.findPool, s.findDatastore, s.findZones, s.findClusters, s.findNetwork} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s.at, nil
}
