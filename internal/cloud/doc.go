// Package cloud says what a private cloud is to this operator: the things it
// holds, the calls it answers and the ways in which a call can end.
//
// Nothing here knows HTTP or Kubernetes. Package rest implements Client over
// the cloud's REST API; package cloudtest holds the suite that every
// implementation must pass.
package cloud
