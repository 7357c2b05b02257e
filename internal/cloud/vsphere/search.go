package vsphere

import (
	"context"
	"errors"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// search looks for the parts of a site.
type search struct {
	finder *find.Finder
	place  Place
	at     *site
	// folders is the path of the datacenter's VM folder.
	folders string
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
