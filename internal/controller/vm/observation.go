package vm

import (
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

// observation is what one reconcile knows.
type observation struct {
	external.Observation[cloud.Server]

	// refresh is when the server's utilisation is to be asked for again; 0 where
	// the listing includes it.
	refresh time.Duration
	// utilizationUnknown: the cloud does not report the server's utilisation any more.
	utilizationUnknown bool
	// checked: the cloud allowed the name in this reconcile. nameErr is its
	// refusal, of this reconcile or a recent one.
	checked bool
	nameErr error
	// importErr refuses the import that the spec asks for. confirmed: a read shows the server that is imported.
	importErr error
	confirmed bool
	// detached says why a Network that the spec names cannot take the VM; interfaces
	// are those of the create if all can.
	detached   error
	interfaces []cloud.Attachment
	// class is the class that the VM takes next, nil if it has that of the spec; unclassed
	// says why it cannot take that of the spec.
	class     *pcapi.VMClassStatus
	unclassed error
	// flavorRefused says why the VM may not have the flavor that its spec names; nil if it may, or has it.
	flavorRefused error
	// snapshot is what the VM is to be reverted to, nil for nothing; unreverted says why it
	// cannot be reverted to that of the spec.
	snapshot   *pcapi.VMSnapshot
	unreverted error
	// userData is the data of the Secret that the spec names.
	userData cloud.UserData
	// socket is what is known of the port that the readiness probe names.
	socket socket
	// refusal is why the cloud refused the size of this generation of the spec, while
	// the server was stopped for it; empty if it did not.
	refusal string
	// aside is why changes of these parts, for this generation of the spec, are not sent again yet.
	aside map[cloud.Part]error
	// unlabelling: the server has the label of the VM's UID, and none of a cluster. On a cloud that
	// removes one label after the other, a release that ended between them leaves it so.
	unlabelling bool
	// altered: the server's owner labels are missing or altered by the cloud, and name no other owner.
	altered bool
	// rival is set if another VM has the name or the server, on a cloud where one
	// excludes the other.
	rival error
	// freeSoon is the outcome if the name or the server that the VM wants is only that of VM objects
	// that are being deleted; nil if it is not.
	freeSoon error
	// contested are the servers that may be this VM's, or that of another VM that has its name
	// or records the id of the server. They are not Candidates.
	contested []cloud.Server
}

// labelled reports whether the server has labels of the VM that its release removes.
func (o *observation) labelled() bool {
	return o.Capabilities().Has(cloud.Labels) && (o.Owned || o.unlabelling)
}
