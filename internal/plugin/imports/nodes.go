package imports

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/privatecloud/operator/internal/controller/gpuinfo"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
)

// nodes has the names of Nodes by what their servers are found by, in lower case.
type nodes struct{ byProviderID, byUUID, byName map[string]string }

// add adds a Node. It counts by name as well, unless its providerID has the id of its server.
// That of a Node in a vCenter has the BIOS UUID, which need not be that id.
func (n *nodes) add(node *corev1.Node) {
	if n.byName == nil {
		*n = nodes{byProviderID: map[string]string{}, byUUID: map[string]string{}, byName: map[string]string{}}
	}
	scheme, id := gpuinfo.ServerOf(node.Spec.ProviderID)
	if id != "" {
		n.byProviderID[strings.ToLower(id)] = node.Name
	}
	if uuid := node.Status.NodeInfo.SystemUUID; uuid != "" {
		n.byUUID[strings.ToLower(uuid)] = node.Name
	}
	if id == "" || scheme == "vsphere" {
		n.byName[strings.ToLower(node.Name)] = node.Name
	}
}

// of returns why a server is that of a Node, empty if it is not.
func (n *nodes) of(server wire.Server) string {
	id := strings.ToLower(server.ID)
	if node := n.byProviderID[id]; node != "" {
		return fmt.Sprintf("it is the server of Node %s, whose providerID has its id", node)
	}
	if node := n.byUUID[id]; node != "" {
		return fmt.Sprintf("it is the server of Node %s, whose system UUID is its id", node)
	}
	if node := n.byName[strings.ToLower(server.Name)]; node != "" {
		return fmt.Sprintf("it seems to be the server of Node %s, which has its name", node)
	}
	return ""
}
