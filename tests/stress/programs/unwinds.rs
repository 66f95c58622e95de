// Panics that are caught, in threads, and one that ends its thread.
use std::{panic, process, thread};

#[inline(never)]
#[no_mangle]
pub fn fails(n: i64) -> i64 {
    let held = vec![n; 10];
    if n % 3 == 0 {
        panic!("three");
    }
    held[3]
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let work = || (0..500).map(|i| panic::catch_unwind(|| fails(i)).unwrap_or(-i)).sum::<i64>();
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(work)).collect();
    let t: i64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let died = thread::spawn(|| fails(3)).join().is_err();
    println!("ended with {} {}", t, died);
    process::exit(7);
}
