// Package simulation runs the controllers of the operator under a scheduler that decides what happens
// next: which call arrives, which answer is lost, what a cache shows, which process dies. docs/design/simulation.md
// says how.
//
//	world.go       one run, and its processes
//	converge.go    time without faults, until all is as specified
//	choices.go     what can happen next
//	people.go      what users, and people in the cloud, may do
//	random.go      a decider that chooses at random
//	sparse.go      a decider that makes few faults
//	search.go      all runs that differ little from the usual one
//	replay.go      a decider that repeats a trace
//	minimize.go    shorter traces
//	invariants.go  what must hold
//	approvals.go   the same for plans that people approve
//	networks.go    the same for Networks
//	snapshots.go   the same for VMSnapshots
//	foreign.go     the same for servers of somebody else
//	ids.go         the same for ids that are used again
//	answers.go     the same for creates that are answered with another server
//	writers.go     the same for objects that users replace
//	listing.go     servers that a listing leaves out
//	stop.go        the same for processes that are asked to stop
//	statistics.go  what was done in all runs
//	process.go     the operator: its manager, and how it dies
//	calls.go       calls on their way to the API server and to the cloud
//	client.go      the client of a process
//	cache.go       the cache of a process, which lags behind
//	queue.go       the work queues
//	apiserver.go   the API server
//	defaults.go    the default values of the CRDs
//	cloud.go       the client of the cloud, and how late the cloud is
//	profile.go     the clouds that are simulated
//	mutants        a command that puts bugs into the code
package simulation
