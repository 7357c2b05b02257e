package cloud

// AntiAffinity is a group of servers that a new server is kept away from. The zero value is
// none.
type AntiAffinity struct {
	// Group names the servers, which were created with the same AntiAffinity: at most 200
	// characters, unique among all clusters and namespaces that use the cloud.
	Group string
	// Required is that the server must not be created on a host with a server of the group.
	// If it is false, the cloud chooses another host if there is one.
	Required bool
}
