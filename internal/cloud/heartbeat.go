package cloud

// Heartbeat is whether the cloud receives heartbeats of an agent in the guest of a server.
type Heartbeat uint8

const (
	// HeartbeatUnknown is that the cloud does not say.
	HeartbeatUnknown Heartbeat = iota
	// HeartbeatNone is that no agent runs in the guest, as before it has booted.
	HeartbeatNone
	// HeartbeatLost is that an agent has sent heartbeats and sends none any more.
	HeartbeatLost
	// HeartbeatOK is that the agent sends heartbeats.
	HeartbeatOK
)
