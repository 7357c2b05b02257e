package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// site is what the Place names, found in the inventory.
type site struct {
	vim        *vim25.Client
	datacenter types.ManagedObjectReference
	hosts      types.ManagedObjectReference
	// root has all VMs, and templates the templates.
	root, templates types.ManagedObjectReference
	pool, datastore types.ManagedObjectReference
	// network is the backing of the first adapter of VMs that name no network; nil for
	// that of the template.
	network types.BaseVirtualDeviceBackingInfo
	// zones are where VMs with a zone are created, and zoneOf the zones by their pool. defect says
	// what is missing of the first of the other zones, nil if there are none.
	zones  map[string]spot
	zoneOf map[types.ManagedObjectReference]string
	defect *cloud.Error
	// found is when the site was looked for.
	found time.Time
	// drs has the pools whose clusters have DRS.
	drs map[types.ManagedObjectReference]bool
}

// locate returns the site, looking for it if it is not known.
func (c *Client) locate(ctx context.Context) (*site, error) {
	if at := c.known(); at != nil {
		return at, nil
	}
	select {
	case c.locating <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.locating }()
	if at := c.known(); at != nil {
		return at, nil
	}
	vim, err := c.session.connect(ctx)
	if err != nil {
		return nil, err
	}
	var at *site
	err = c.session.sure(ctx, func() (bool, error) {
		at, err = findSite(ctx, vim, c.place)
		return cloud.Is(err, cloud.Misconfigured), err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.site = at
	return at, nil
}

func (c *Client) known() *site {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.site.outdated(c.defectHold) {
		return nil
	}
	return c.site
}

// dropSite makes the next call look for the site again, unless another site than the
// given one is known meanwhile; nil is for any.
func (c *Client) dropSite(at *site) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at == nil || c.site == at {
		c.site = nil
	}
}

// search looks for the parts of a site.
type search struct {
	finder *find.Finder
	place  Place
	at     *site
	// folders is the path of the datacenter's VM folder.
	folders string
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

func (s *search) findDatacenter(ctx context.Context) error {
	datacenter, err := s.finder.DatacenterOrDefault(ctx, s.place.Datacenter)
	if err != nil {
		return missing(err, "datacenter", s.place.Datacenter, func() ([]string, error) {
			return namesOf(ctx, s.finder.DatacenterList)
		})
	}
	s.finder.SetDatacenter(datacenter)
	folders, err := datacenter.Folders(ctx)
	if err != nil {
		return err
	}
	s.at.datacenter, s.at.hosts = datacenter.Reference(), folders.HostFolder.Reference()
	s.folders = folders.VmFolder.InventoryPath
	return nil
}

func (s *search) findFolders(ctx context.Context) error {
	var err error
	if s.at.root, err = s.folder(ctx, "folder", s.place.Folder); err != nil {
		return err
	}
	s.at.templates = s.at.root
	if s.place.TemplateFolder != "" {
		s.at.templates, err = s.folder(ctx, "templates.folder", s.place.TemplateFolder)
	}
	return err
}

// folder looks for a VM folder of the datacenter.
func (s *search) folder(ctx context.Context, field, name string) (types.ManagedObjectReference, error) {
	path := name
	if !strings.HasPrefix(name, "/") {
		path = s.folders + "/" + name
	}
	if path != s.folders && !strings.HasPrefix(path, s.folders+"/") {
		return types.ManagedObjectReference{}, refuse("", cloud.Misconfigured, "spec.vsphere.%s %s is not below %s, the VM folder of the datacenter", field, quote(name), s.folders)
	}
	folder, err := s.finder.Folder(ctx, path)
	if err != nil {
		return types.ManagedObjectReference{}, missing(err, field, name, func() ([]string, error) {
			return namesOf(ctx, func(ctx context.Context, _ string) ([]*object.Folder, error) {
				return s.finder.FolderList(ctx, s.folders+"/*")
			})
		})
	}
	return folder.Reference(), nil
}

func (s *search) findPool(ctx context.Context) (err error) {
	s.at.pool, err = s.pool(ctx, "resourcePool", s.place.ResourcePool)
	return err
}

// pool looks for a resource pool of the datacenter.
func (s *search) pool(ctx context.Context, field, name string) (types.ManagedObjectReference, error) {
	pool, err := s.finder.ResourcePoolOrDefault(ctx, name)
	if err != nil {
		return types.ManagedObjectReference{}, missing(err, field, name, func() ([]string, error) {
			found, err := s.finder.ResourcePoolList(ctx, "*")
			var paths []string
			for _, pool := range found {
				paths = append(paths, pool.InventoryPath)
			}
			return paths, err
		})
	}
	return pool.Reference(), nil
}

func (s *search) findDatastore(ctx context.Context) (err error) {
	s.at.datastore, err = s.datastore(ctx, "datastore", s.place.Datastore)
	return err
}

// datastore looks for a datastore of the datacenter.
func (s *search) datastore(ctx context.Context, field, name string) (types.ManagedObjectReference, error) {
	datastore, err := s.finder.DatastoreOrDefault(ctx, name)
	if err != nil {
		return types.ManagedObjectReference{}, missing(err, field, name, func() ([]string, error) {
			return namesOf(ctx, s.finder.DatastoreList)
		})
	}
	return datastore.Reference(), nil
}

func (s *search) findNetwork(ctx context.Context) error {
	if s.place.Network == "" {
		return nil
	}
	network, err := s.finder.Network(ctx, s.place.Network)
	if err != nil {
		return missing(err, "networks.default", s.place.Network, func() ([]string, error) {
			found, err := s.finder.NetworkList(ctx, "*")
			var names []string
			for _, network := range found {
				names = append(names, lastOf(network.GetInventoryPath()))
			}
			return names, err
		})
	}
	s.at.network, err = network.EthernetCardBackingInfo(ctx)
	return err
}

// missing returns err, or if it says that there is not exactly one object of that
// name, what there is.
func missing(err error, field, name string, list func() ([]string, error)) error {
	var what string
	_, notFound := errors.AsType[*find.NotFoundError](err)
	_, noDefault := errors.AsType[*find.DefaultNotFoundError](err)
	_, several := errors.AsType[*find.MultipleFoundError](err)
	_, severalDefaults := errors.AsType[*find.DefaultMultipleFoundError](err)
	switch {
	case notFound && name != "":
		what = quote(name) + " does not exist"
	case several && name != "":
		what = quote(name) + " is not the only one of this name: give its inventory path"
	case notFound || noDefault:
		what = "is absent, and there is none"
	case several || severalDefaults:
		what = "is absent, and there are several: name one"
	default:
		return err
	}
	return refuse("", cloud.Misconfigured, "spec.vsphere.%s %s; %s", field, what, existing(list))
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

func quoteAll(names []string) []string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, quote(name))
	}
	return quoted
}

// namesOf returns the names of all objects that a Finder lists.
func namesOf[T interface{ Name() string }](ctx context.Context, list func(context.Context, string) ([]T, error)) ([]string, error) {
	found, err := list(ctx, "*")
	names := make([]string, 0, len(found))
	for _, object := range found {
		names = append(names, object.Name())
	}
	return names, err
}

func lastOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }
