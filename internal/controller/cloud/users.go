package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// shownNamespaces and shownNames bound what the status names of each kind that keeps a
// deleted Cloud: the first namespaces, and the first names in each.
const shownNamespaces, shownNames = 5, 3

// usage is what the status says of the objects that keep a deleted Cloud.
type usage struct {
	count int
	text  string
}

// usersOf selects the objects that name a Cloud or are on it. They are shared with the cache.
func usersOf(c *pcapi.Cloud) []client.ListOption {
	return []client.ListOption{client.MatchingFields{tenancy.CloudIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
}

// observeUsers counts the VMs, Networks and VMSnapshots that keep a deleted Cloud. What the status
// shows of them is kept for the time of a recheck, so that a deletion of many does not
// write the status for each.
func (k *kind) observeUsers(ctx context.Context, c *pcapi.Cloud, obs *observation) error {
	all, err := k.vmsOf(ctx, c)
	if err != nil {
		return err
	}
	var networks pcapi.NetworkList
	if err := k.client.List(ctx, &networks, usersOf(c)...); err != nil {
		return fmt.Errorf("list Networks of Cloud %q: %w", c.Name, err)
	}
	vms, nets := k.keeping(ctx, c, all, networks.Items)
	snapshots, err := k.keptBySnapshots(ctx, c)
	if err != nil {
		return err
	}
	obs.users = len(vms) + len(nets) + len(snapshots)
	m, now := k.memoryOf(c), k.Clock()
	if m.used.count == 0 || now.Sub(m.usedAt) >= recheck {
		m.used, m.usedAt = usage{count: obs.users, text: named("VMs", vms) + "; " + named("Networks", nets)}, now
		if len(snapshots) > 0 {
			m.used.text += "; " + named("VMSnapshots", snapshots)
		}
	}
	obs.shown = m.used
	return nil
}

// keeping returns the VMs and Networks that keep a deleted Cloud: those of
// namespaces that may use it, and those whose status records something on it.
// Users cannot write the status, so that a namespace that may not use the Cloud
// cannot keep it.
func (k *kind) keeping(ctx context.Context, c *pcapi.Cloud, vms []pcapi.VM, networks []pcapi.Network) (keptBy, keptByNetworks []types.NamespacedName) {
	access := map[string]bool{}
	mayUse := func(namespace string) bool {
		may, known := access[namespace]
		if !known {
			_, err := tenancy.Open(ctx, k.client, namespace, c.Name)
			denied, ok := errors.AsType[*tenancy.AccessError](err)
			may = !ok || denied.Missing // the cache may lack the Cloud already
			access[namespace] = may
		}
		return may
	}
	for i := range vms {
		status := &vms[i].Status
		recorded := status.Cloud == c.Name && (status.VMID != "" || status.NameInCloud != "")
		if recorded || mayUse(vms[i].Namespace) {
			keptBy = append(keptBy, client.ObjectKeyFromObject(&vms[i]))
		}
	}
	for i := range networks {
		status := &networks[i].Status
		recorded := status.Cloud == c.Name && status.NetworkID != ""
		if recorded || mayUse(networks[i].Namespace) {
			keptByNetworks = append(keptByNetworks, client.ObjectKeyFromObject(&networks[i]))
		}
	}
	return keptBy, keptByNetworks
}

// keptBySnapshots returns the VMSnapshots that keep a deleted Cloud: those that may have a
// snapshot on it.
func (k *kind) keptBySnapshots(ctx context.Context, c *pcapi.Cloud) ([]types.NamespacedName, error) {
	var list pcapi.VMSnapshotList
	if err := k.client.List(ctx, &list, usersOf(c)...); err != nil {
		return nil, fmt.Errorf("list VMSnapshots of Cloud %q: %w", c.Name, err)
	}
	var keptBy []types.NamespacedName
	for i := range list.Items {
		if controllerutil.ContainsFinalizer(&list.Items[i], pcapi.VMSnapshotFinalizer) {
			keptBy = append(keptBy, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return keptBy, nil
}

// named counts objects of one kind, and names the first of the first namespaces, such
// as: VMs: 4 (team-a 3: db, web-0, web-1; team-b 1: web).
func named(kind string, keys []types.NamespacedName) string {
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	byNamespace, namespaces := map[string][]string{}, []string(nil)
	for _, key := range keys {
		if byNamespace[key.Namespace] == nil {
			namespaces = append(namespaces, key.Namespace)
		}
		byNamespace[key.Namespace] = append(byNamespace[key.Namespace], key.Name)
	}
	var parts []string
	for _, namespace := range namespaces[:min(len(namespaces), shownNamespaces)] {
		names := byNamespace[namespace]
		first := strings.Join(names[:min(len(names), shownNames)], ", ")
		if len(names) > shownNames {
			first += ", …"
		}
		parts = append(parts, fmt.Sprintf("%s %d: %s", namespace, len(names), first))
	}
	if more := len(namespaces) - shownNamespaces; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more namespaces", more))
	}
	text := fmt.Sprintf("%s: %d", kind, len(keys))
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, "; ") + ")"
	}
	return text
}
