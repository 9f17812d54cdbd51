fn main() {
    let a: Vec<String> = std::env::args().collect();
    let alg = onramp_loader::find(&a[2]).unwrap();
    match a[1].as_str() {
        "attach" => {
            let mut p = alg.parameters();
            p.assign(&a[3..]).unwrap();
            match onramp_loader::attach(&onramp_loader::AttachOptions::new(p)) { Ok(x) => println!("{x:?}"), Err(e) => println!("{e}") }
        }
        _ => match onramp_loader::detach(alg, false) { Ok(x) => println!("{x:?}"), Err(e) => println!("{e}") }
    }
}
