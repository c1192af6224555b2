//! Futures in boxes.

use futures_util::future::BoxFuture;

/// Puts a future in a box.
///
/// `FutureExt::boxed` makes the future first, then the box, and copies all of it, which for a run are
/// thousands of bytes that nobody has written yet. Here the place is there first, and what the
/// future begins with is written to it.
#[inline]
pub(crate) fn boxed<'a, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    let place = Box::<F>::new_uninit();
    let future: Box<F> = Box::write(place, make());
    Box::into_pin(future)
}
