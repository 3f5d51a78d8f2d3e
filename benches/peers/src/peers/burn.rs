//! burn, on wgpu.

use super::Prepared;
use crate::Failure;
use crate::task::{BASE, Operation, ROTATION, Task};
use burn::nn::{RotaryEncoding, RotaryEncodingConfig};
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Device, Tensor, TensorData};

/// What a run does with the inputs.
type Compute = Box<dyn Fn(&[Tensor<4>]) -> Vec<Tensor<4>>>;

struct Burn {
    device: Device,
    inputs: Vec<Tensor<4>>,
    results: Vec<Tensor<4>>,
    compute: Compute,
}

/// On the device that burn takes by itself, which must be this adapter.
pub fn prepare(task: Task, adapter: &str) -> Result<Box<dyn Prepared>, Failure> {
    let (device, setup) = Device::wgpu_options().init_with_setup()?;
    let took = setup.adapter.get_info().name;
    if took != adapter {
        return Err(format!("burn took {took} and phasor {adapter}; CUBECL_WGPU_DEFAULT_DEVICE takes another").into());
    }
    let compute: Compute = match task.operation {
        Operation::Rotation => rotation(task, &device),
        Operation::Attention => Box::new(|inputs| plain(inputs).into_iter().collect()),
        Operation::Cope => return Err("burn has no contextual position encoding".into()),
    };
    let inputs = task.inputs().into_iter();
    let inputs = inputs.map(|(values, shape)| Tensor::from_data(TensorData::new(values, shape), &device)).collect();
    Ok(Box::new(Burn { device, inputs, results: Vec::new(), compute }))
}

fn rotation(task: Task, device: &Device) -> Compute {
    let [_, _, channels] = ROTATION;
    let config = RotaryEncodingConfig::new(task.start + task.tokens, channels).with_theta(BASE as f32);
    let rope: RotaryEncoding = config.init(device);
    Box::new(move |inputs| inputs.iter().map(|x| rope.apply(x.clone(), task.start)).collect())
}

fn plain(inputs: &[Tensor<4>]) -> Option<Tensor<4>> {
    let [q, k, v] = inputs else { return None };
    let options = AttentionModuleOptions { is_causal: true, ..AttentionModuleOptions::default() };
    Some(attention(q.clone(), k.clone(), v.clone(), None, None, options))
}

impl Prepared for Burn {
    fn run(&mut self) -> Result<(), Failure> {
        self.results = (self.compute)(&self.inputs);
        self.device.sync().map_err(|e| format!("{e:?}").into())
    }

    fn answer(&self) -> Result<Vec<f32>, Failure> {
        let read = self.results.iter().map(|result| result.to_data().try_to_vec::<f32>());
        Ok(read.collect::<Result<Vec<_>, _>>().map_err(|e| format!("{e:?}"))?.concat())
    }
}
