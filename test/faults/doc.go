// Package faults kills the operator, cuts it off and lies to it, and checks
// that nothing is made twice, lost or wrongly deleted all the same.
//
// The manager runs as a process of its own, between two proxies: one before a
// real API server, one before the mock cloud. Every call that changes something
// passes one gate, which numbers the calls and can hold any of them while the
// manager is killed. The mock's ledger tells what really happened.
//
//	gate.go        numbers effects; holds, drops or falsifies one
//	proxy.go       the two proxies
//	manager.go     the process
//	world.go       all that one run needs, and nothing that another run sees
//	recorder.go    every status that the API server ever showed
//	invariants.go  what must hold, whatever happened
//	networks.go    the same for Networks
//	scenario.go    what a user does, told as stages, and the kills in between
//
// Without more, a selection of all runs is made, in about three minutes. FAULTS=full
// makes them all; any other FAULTS makes those whose name holds that text.
// FAULTS_SEED repeats what was random. -ginkgo.v tells of each run as it ends.
package faults
