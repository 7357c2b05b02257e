// Package reconciler is the engine that every kind's controller runs on: one
// reconcile of one object, from the cached read to a single status patch.
//
//	Get -> paused? -> Observe -> Plan -> steps -> Report -> finish
//
// A kind supplies Observe, Plan, the steps and Report (Kind). The engine owns
// the rest. Each reconcile ends in an outcome, which is nil or an error: a
// WaitError, a BlockedError, a StalledError or any other error. Only finish
// turns an outcome into a result and into the Ready, Reconciling and Stalled
// conditions, and only finish writes the status.
//
//	reconciler.go  one reconcile, and what a kind supplies
//	step.go        steps and plans
//	outcome.go     how a reconcile can end
//	status.go      summary conditions, the status patch and the result
//	events.go      what is recorded and logged of a changed status
//	metadata.go    claims and releases: finalizer and annotations
//	releases.go    objects that were released a moment ago
//	predicates.go  which updates of an object enqueue it
package reconciler
