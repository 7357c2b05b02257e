// Package reconciler is the engine that every kind's controller runs on: one
// pass over one object, from the cached read to a single status patch.
//
//	Get → paused? → observe → plan → act → report → settle
//
// A kind supplies the middle (Kind); the engine owns the ends. Steps end in a
// verdict, which is an error type: Wait, Blocked, Stalled or any other error.
// Only settle turns a verdict into a result and into Ready, Reconciling and
// Stalled, and only settle writes status.
package reconciler
