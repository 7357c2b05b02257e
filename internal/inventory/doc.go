// Package inventory keeps, for each cloud, one picture of its servers that all
// reconcilers share: listed page by page, published whole, amended by what we
// ourselves did since, and read without asking the cloud again.
//
// A picture is only ever replaced by a complete one. Whoever needs a picture
// newer than some moment, or a cloud that can be used again, says so and is
// woken when it is there; nobody polls the cloud on its own.
//
// What a cloud has few of, such as networks, is listed when somebody needs it,
// once for all.
package inventory
