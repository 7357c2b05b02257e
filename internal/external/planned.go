package external

// PlannedAction is what a planned change does in the cloud.
type PlannedAction string

const (
	// PlannedCreate creates the resource, and PlannedDelete deletes it.
	PlannedCreate PlannedAction = "Create"
	PlannedDelete PlannedAction = "Delete"
	// PlannedImport sets the owner labels of a resource that exists, and PlannedRelease
	// removes them.
	PlannedImport  PlannedAction = "Import"
	PlannedRelease PlannedAction = "Release"
	// PlannedUpdate changes what the details say.
	PlannedUpdate PlannedAction = "Update"
	// PlannedPowerOn and the next three change the power state of a server. PlannedRestart
	// stops it, after which it is started.
	PlannedPowerOn  PlannedAction = "PowerOn"
	PlannedPowerOff PlannedAction = "PowerOff"
	PlannedSuspend  PlannedAction = "Suspend"
	PlannedResume   PlannedAction = "Resume"
	PlannedRestart  PlannedAction = "Restart"
	// PlannedRevert reverts a server to a snapshot.
	PlannedRevert PlannedAction = "Revert"
)

// PlannedChange is one change in the cloud that the operator is going to make.
type PlannedChange struct {
	// Action is what is done.
	Action PlannedAction `json:"action"`
	// Name is that of the resource in the cloud, or of the object if that gives the name.
	Name string `json:"name"`
	// ID is the cloud's id of the resource; empty if it does not exist yet.
	ID string `json:"id,omitempty"`
	// Details are what the resource gets, such as "cpu 2 to 4".
	Details []string `json:"details,omitempty"`
	// IfStopNeeded is what happens if the cloud makes this change of a server that runs only
	// while it is stopped: Restart to stop and start it, or Wait until somebody stops it.
	// Empty for any other change.
	IfStopNeeded StopNeeded `json:"ifStopNeeded,omitempty"`
}

// StopNeeded is what happens if a change needs a stopped server.
type StopNeeded string

const (
	StopNeededRestart StopNeeded = "Restart"
	StopNeededWait    StopNeeded = "Wait"
)
