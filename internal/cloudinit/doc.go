// Package cloudinit makes the user data that a server gets for cloud-init, and keeps it
// out of messages.
//
//	compose.go  user data and SSH keys in one document
//	quoted.go   texts that quote user data
package cloudinit
