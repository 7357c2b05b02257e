package vsphere

import (
	"context"
	"sync"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// templatesHold is how long templates are used without asking again, and
	// templatesPause the least time between two such requests.
	templatesHold  = time.Minute
	templatesPause = 2 * time.Second
)

// template is a template that VMs can be made from.
type template struct {
	name string
	ref  types.ManagedObjectReference
	// snapshot is the current one; its value is empty if there is none.
	snapshot types.ManagedObjectReference
	// networks are the backings of the first adapters of a clone; none for those of the
	// template.
	networks []types.BaseVirtualDeviceBackingInfo
	// devices are those of the template, and disks what a clone has beside them.
	devices object.VirtualDeviceList
	disks   diskChanges
	// vApp is whether it has a vApp configuration, of which a guest gets an OVF environment.
	vApp bool
	// unreadable is whether the vCenter does not return its configuration, so that it may be a template.
	unreadable bool
}

// templates remembers the templates of a site.
type templates struct {
	session *session
	place   Place

	mu   sync.Mutex
	of   *site
	at   time.Time
	list map[string]template
}

// get returns the template of a name.
func (t *templates) get(ctx context.Context, at *site, name string) (template, error) {
	if name == "" {
		name = t.place.DefaultTemplate
	}
	if name == "" {
		return template{}, refuse("", cloud.Rejected, "no template is named, and the Cloud has no default")
	}
	list, age := t.known(at)
	if found, ok := list[name]; ok && age < templatesHold && !found.unreadable {
		return t.usable(name, found)
	}
	if list == nil || age >= templatesPause {
		var err error
		if list, err = t.read(ctx, at); err != nil {
			return template{}, err
		}
	}
	if found, ok := list[name]; ok {
		return t.usable(name, found)
	}
	return template{}, &cloud.Error{
		Kind: cloud.Rejected, Code: "templateUnknown", Detail: "there is no template " + quote(name) + "; " + existing(func() ([]string, error) { return namesIn(list), nil }),
	}
}

// usable refuses a template that cannot be read, or that the clone mode of the Cloud does not allow.
func (t *templates) usable(name string, found template) (template, error) {
	if found.unreadable {
		return found, refuse("", cloud.Unavailable, "the vCenter cannot read the configuration of the template %s at the moment", quote(name))
	}
	if t.place.LinkedClones && found.snapshot.Value == "" {
		return found, refuse("", cloud.Rejected, "the template %s has no snapshot, which linked clones need: the administrator makes one, or sets cloneMode to Full", quote(name))
	}
	return found, nil
}

// check fails if there is no default template where the Place names one.
func (t *templates) check(ctx context.Context, at *site) (template, error) {
	name := t.place.DefaultTemplate
	if name == "" {
		return template{}, nil
	}
	list, err := t.read(ctx, at)
	if err != nil {
		return template{}, err
	}
	found, ok := list[name]
	if !ok {
		return found, refuse("", cloud.Misconfigured, "spec.vsphere.templates.default %s is no template in the folder of templates; %s", quote(name),
			existing(func() ([]string, error) { return namesIn(list), nil }))
	}
	if _, err := t.usable(name, found); cloud.Is(err, cloud.Unavailable) {
		return found, err
	} else if err != nil {
		return found, refuse("", cloud.Misconfigured, "spec.vsphere.templates.default %s has no snapshot, which linked clones need: make one, or set cloneMode to Full", quote(name))
	}
	return found, nil
}

// known returns the templates as they were read last, and how long ago that was.
func (t *templates) known(at *site) (map[string]template, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != at {
		return nil, 0
	}
	return t.list, time.Since(t.at)
}

// forget makes the next call read the templates again.
func (t *templates) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of = nil
}

func (t *templates) read(ctx context.Context, at *site) (map[string]template, error) {
	var found []entity
	err := t.session.sure(ctx, func() (empty bool, err error) {
		found, err = collect(ctx, at.vim, types.PropertyFilterSpec{
			PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{"name", templatePath, "snapshot.currentSnapshot", devicePath, vAppPath}}},
			ObjectSet: []types.ObjectSpec{children(at.templates, false)},
		})
		return err == nil && len(found) == 0, err
	})
	if err != nil {
		return nil, err
	}
	list := map[string]template{}
	for _, vm := range found {
		_, known := vm.props[templatePath]
		if known && !vm.flag(templatePath) || vm.deleted() {
			continue // a VM, which may be somebody's
		}
		name := unescaped(vm.text("name"))
		list[name] = template{
			name: name, ref: vm.ref, snapshot: vm.reference("snapshot.currentSnapshot"), devices: devicesOf(vm), unreadable: !known || vm.deviceless(),
			vApp: vm.props[vAppPath] != nil,
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of, t.at, t.list = at, time.Now(), list
	return list, nil
}

func namesIn(list map[string]template) []string {
	names := make([]string, 0, len(list))
	for name, of := range list {
		if !of.unreadable {
			names = append(names, name)
		}
	}
	return names
}
