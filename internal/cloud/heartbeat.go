package cloud

// Heartbeat is what the guest of a server is heard of by the agent that runs in it.
type Heartbeat uint8

const (
	// HeartbeatUnknown is that the cloud does not say.
	HeartbeatUnknown Heartbeat = iota
	// HeartbeatNone is that no agent runs in the guest, as before it has booted.
	HeartbeatNone
	// HeartbeatLost is that the agent ran and sends nothing any more.
	HeartbeatLost
	// HeartbeatOK is that the agent sends heartbeats.
	HeartbeatOK
)
