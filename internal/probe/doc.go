// Package probe opens TCP connections to guests of VMs, to find out whether they accept them.
//
//	networks.go   which addresses may be dialled
//	exclusion.go  which addresses of these networks may not: those of the platform
//	dial.go       one connection, and what its end says
//	outcome.go    what counts as a change (pure)
//	prober.go     targets, their results, and who is notified of changes
//	schedule.go   which target is dialled next
//	heap.go       the queues of the schedule
//	metrics.go    the metrics
//
// Addresses come from clouds and guests, and so from tenants. Only those in the networks that
// the administrator allows are dialled, except those of the platform. Nothing is sent or read, and what is reported of a
// connection is a Result. All is in memory: a process that starts knows no result.
package probe
