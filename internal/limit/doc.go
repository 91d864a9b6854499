// Package limit admits or refuses calls by rates and caps, and settles them.
package limit
